"""The RPC endpoint of volume types. The API has asked its policy."""

from __future__ import annotations

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.messages import VolumeTypeEdit
from conductor.store.volumes import types


class VolumeTypeEndpoint:
    """See ``conductor.rpc_api.VolumeTypeRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_volume_type(self, ctxt: RequestContext, asked: VolumeTypeEdit) -> str:
        """See ``ConductorClient.create_volume_type``."""
        return self._cloud.store.run(lambda c: types.create(c, asked))

    def edit_volume_type(self, ctxt: RequestContext, type_id: str, asked: VolumeTypeEdit) -> None:
        """See ``ConductorClient.edit_volume_type``."""
        default = self._cloud.conf.volumes.default_type
        self._cloud.store.run(lambda c: types.edit(c, type_id, asked, default))

    def delete_volume_type(self, ctxt: RequestContext, type_id: str) -> None:
        """See ``ConductorClient.delete_volume_type``."""
        default = self._cloud.conf.volumes.default_type
        self._cloud.store.run(lambda c: types.delete(c, type_id, default))

    def allow_volume_type(
        self, ctxt: RequestContext, type_id: str, project_id: str, wanted: bool
    ) -> None:
        """See ``ConductorClient.allow_volume_type``."""
        self._cloud.store.run(lambda c: types.allow(c, type_id, project_id, wanted=wanted))

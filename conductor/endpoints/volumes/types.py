"""The RPC endpoint of volume types. The API has asked its policy."""

from __future__ import annotations

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.rpc.volumes.types import VolumeTypeEdit
from conductor.store.hosts import registry
from conductor.store.volumes import types


class VolumeTypeEndpoint:
    """See ``conductor.rpc.VolumeTypeRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_volume_type(self, ctxt: RequestContext, asked: VolumeTypeEdit) -> str:
        return self._cloud.store.run(lambda c: types.create(c, asked))

    def edit_volume_type(self, ctxt: RequestContext, type_id: str, asked: VolumeTypeEdit) -> None:
        default = self._cloud.conf.volumes.default_type
        self._cloud.store.run(lambda c: types.edit(c, type_id, asked, default))

    def delete_volume_type(self, ctxt: RequestContext, type_id: str) -> None:
        default = self._cloud.conf.volumes.default_type
        self._cloud.store.run(lambda c: types.delete(c, type_id, default))

    def allow_volume_type(
        self, ctxt: RequestContext, type_id: str, project_id: str, *, wanted: bool
    ) -> None:
        self._cloud.store.run(lambda c: types.allow(c, type_id, project_id, wanted=wanted))

    def set_default_volume_type(
        self, ctxt: RequestContext, project_id: str, type_id: str | None
    ) -> None:
        self._cloud.store.run(lambda c: types.set_default(c, project_id, type_id))

    def update_volume_service(
        self, ctxt: RequestContext, service_uuid: str, *, disabled: bool, reason: str | None
    ) -> None:
        changes = {"volumes_disabled": disabled, "volumes_disabled_reason": reason}
        self._cloud.store.run(lambda c: registry.update_service(c, service_uuid, changes))

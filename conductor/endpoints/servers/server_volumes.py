"""The RPC endpoint of servers' volumes."""

from __future__ import annotations

from common.context import RequestContext
from common.resources.states import ResourceType
from conductor.cloud import Cloud
from conductor.engine.runner import Submits
from conductor.rpc.servers.server_volumes import AttachedVolume, AttachRequest
from conductor.servers.guest.begin_volume import VolumeAcceptance


class ServerVolumeEndpoint:
    """See ``conductor.rpc.ServerVolumeRpc``."""

    def __init__(self, cloud: Cloud, runner: Submits) -> None:
        self._runner, self._accept = runner, VolumeAcceptance(cloud)

    def attach_volume(
        self, ctxt: RequestContext, server_uuid: str, asked: AttachRequest
    ) -> AttachedVolume:
        ctxt.about(ResourceType.SERVER, server_uuid)
        operation, attached = self._accept.attach(ctxt, server_uuid, asked)
        self._runner.submit(operation)
        return attached

    def detach_volume(self, ctxt: RequestContext, server_uuid: str, volume_id: str) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        self._runner.submit(self._accept.detach(ctxt, server_uuid, volume_id))

    def set_delete_on_termination(
        self, ctxt: RequestContext, server_uuid: str, volume_id: str, *, delete: bool
    ) -> None:
        self._accept.set_delete_on_termination(ctxt, server_uuid, volume_id, delete=delete)

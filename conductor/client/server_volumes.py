"""Calls about servers' volumes."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import AttachedVolume, VolumeWish
from conductor.rpc_api import ServerVolumeRpc


class ServerVolumeCalls(Base):
    """See ``conductor.rpc_api.ServerVolumeRpc``."""

    def attach_volume(
        self, ctxt: RequestContext, server_uuid: str, asked: VolumeWish
    ) -> AttachedVolume:
        """Begin to attach a volume; where that fails it is as it was.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, VolumeNotFound, Invalid (its
        status, attached already, out of the server's reach), Forbidden (no slot left), Conflict
        (its memory is saved, the host's agent is down).
        """
        return self._rpc.call(
            ctxt, ServerVolumeRpc.attach_volume, server_uuid=server_uuid, asked=asked
        )

    def detach_volume(self, ctxt: RequestContext, server_uuid: str, volume_id: str) -> None:
        """Begin to detach a volume; where the guest keeps it, it stays.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, VolumeNotFound, NotFound (the
        server hasn't it), Invalid (its status, a root disk), Conflict (its memory is saved, the
        host's agent is down).
        """
        self._rpc.call(
            ctxt, ServerVolumeRpc.detach_volume, server_uuid=server_uuid, volume_id=volume_id
        )

    def keep_volume(
        self, ctxt: RequestContext, server_uuid: str, volume_id: str, *, delete: bool
    ) -> None:
        """Set whether a volume goes with its server. Raises ServerNotFound, NotFound."""
        self._rpc.call(
            ctxt,
            ServerVolumeRpc.keep_volume,
            server_uuid=server_uuid,
            volume_id=volume_id,
            delete=delete,
        )

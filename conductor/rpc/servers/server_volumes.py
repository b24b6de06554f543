"""Calls about volumes of servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class AttachRequest:
    """A volume that a server is to have."""

    volume_id: str
    tag: str | None = None
    delete_on_termination: bool = False
    mode: str = "rw"


@dataclass(frozen=True)
class AttachedVolume:
    """An attachment that began."""

    attachment_id: str
    slot: int


class ServerVolumeRpc(Protocol):
    """Volumes of servers."""

    def attach_volume(
        self, ctxt: RequestContext, server_uuid: str, asked: AttachRequest
    ) -> AttachedVolume:
        """Begin to attach a volume; where that fails it is as it was.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, VolumeNotFound, Invalid (its
        status, attached already, out of the server's reach), Forbidden (no slot left), Conflict
        (its memory is saved, the host's agent is down).
        """

    def detach_volume(self, ctxt: RequestContext, server_uuid: str, volume_id: str) -> None:
        """Begin to detach a volume; it remains attached if the guest doesn't release it.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, VolumeNotFound, NotFound (the
        server lacks it), Invalid (its status, a root disk), Conflict (its memory is saved, the
        host's agent is down).
        """

    def set_delete_on_termination(
        self, ctxt: RequestContext, server_uuid: str, volume_id: str, *, delete: bool
    ) -> None:
        """Set whether a volume is deleted with its server. Raises ServerNotFound, NotFound."""

"""Calls about transfers of volumes to other projects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class NewVolumeTransfer:
    """An offer of a volume to another project that is asked for."""

    volume_id: str
    name: str | None = None
    no_snapshots: bool = False
    """Whether the volume's snapshots stay where they are."""


@dataclass(frozen=True)
class OfferedVolume:
    """A transfer that began. The key is known to its reader alone: it isn't kept."""

    transfer_id: str
    auth_key: str = field(repr=False)


class VolumeTransferRpc(Protocol):
    """Transfers of volumes to other projects."""

    def create_volume_transfer(
        self, ctxt: RequestContext, transfer: NewVolumeTransfer
    ) -> OfferedVolume:
        """Offer a volume; return the transfer's id with its key, which is kept nowhere.

        Raises VolumeNotFound, Invalid (its status, or a snapshot's).
        """

    def accept_volume_transfer(
        self, ctxt: RequestContext, transfer_id: str, auth_key: str
    ) -> None:
        """Make a volume that is offered the project's own.

        Raises NotFound, Invalid (the key, or a status), QuotaExceeded.
        """

    def delete_volume_transfer(self, ctxt: RequestContext, transfer_id: str) -> None:
        """End an offer; the volume is available again. Raises NotFound."""

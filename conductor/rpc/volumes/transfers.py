"""Calls about transfers of volumes to other projects."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Protocol

from common.context import RequestContext

#: characters of a key are half as many bytes: Cinder's length
_KEY_BYTES = 8


def new_key() -> str:
    """Return a key that a person can type."""
    return secrets.token_hex(_KEY_BYTES)


@dataclass(frozen=True)
class NewVolumeTransfer:
    """An offer of a volume to another project that is asked for."""

    volume_id: str
    name: str | None = None
    no_snapshots: bool = False
    """Whether the volume's snapshots stay where they are."""
    auth_key: str = field(default="", repr=False)
    """What opens it; empty: one is drawn, and answered."""


@dataclass(frozen=True)
class OfferedVolume:
    """A transfer that began."""

    transfer_id: str
    auth_key: str = field(repr=False)
    """The key, if it was drawn: it is known to its reader alone. Else empty."""


class VolumeTransferRpc(Protocol):
    """Transfers of volumes to other projects."""

    def create_volume_transfer(
        self, ctxt: RequestContext, transfer: NewVolumeTransfer
    ) -> OfferedVolume:
        """Offer a volume; return the transfer's id, with the key if it was drawn.

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

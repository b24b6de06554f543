"""Calls about transfers of volumes, and about the messages that say why something failed."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewVolumeTransfer, OfferedVolume
from conductor.rpc_api import VolumeMessageRpc, VolumeTransferRpc


class VolumeTransferCalls(Base):
    """See ``conductor.rpc_api.VolumeTransferRpc`` and ``VolumeMessageRpc``."""

    def create_volume_transfer(
        self, ctxt: RequestContext, transfer: NewVolumeTransfer
    ) -> OfferedVolume:
        """Offer a volume; return the transfer's id with its key, which is kept nowhere.

        Raises VolumeNotFound, Invalid (its status, or a snapshot's).
        """
        return self._rpc.call(ctxt, VolumeTransferRpc.create_volume_transfer, transfer=transfer)

    def accept_volume_transfer(
        self, ctxt: RequestContext, transfer_id: str, auth_key: str
    ) -> None:
        """Make a volume that is offered the project's own.

        Raises NotFound, Invalid (the key, or a status), QuotaExceeded.
        """
        self._rpc.call(
            ctxt,
            VolumeTransferRpc.accept_volume_transfer,
            transfer_id=transfer_id,
            auth_key=auth_key,
        )

    def delete_volume_transfer(self, ctxt: RequestContext, transfer_id: str) -> None:
        """End an offer; the volume is available again. Raises NotFound."""
        self._rpc.call(ctxt, VolumeTransferRpc.delete_volume_transfer, transfer_id=transfer_id)

    def delete_volume_message(self, ctxt: RequestContext, operation_id: int) -> None:
        """Have the message of a failed operation be shown no more."""
        self._rpc.call(ctxt, VolumeMessageRpc.delete_volume_message, operation_id=operation_id)

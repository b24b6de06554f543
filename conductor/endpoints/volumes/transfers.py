"""The RPC endpoint of transfers of volumes. The API has asked its policy."""

from __future__ import annotations

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.rpc.volumes.transfers import NewVolumeTransfer, OfferedVolume
from conductor.volumes import transfer as transferring


class VolumeTransferEndpoint:
    """See ``conductor.rpc.VolumeTransferRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_volume_transfer(
        self, ctxt: RequestContext, transfer: NewVolumeTransfer
    ) -> OfferedVolume:
        cloud = self._cloud
        return cloud.store.run(lambda c: transferring.offer(c, cloud, ctxt, transfer))

    def accept_volume_transfer(
        self, ctxt: RequestContext, transfer_id: str, auth_key: str
    ) -> None:
        cloud = self._cloud
        cloud.store.run(lambda c: transferring.accept(c, cloud, ctxt, transfer_id, auth_key))

    def delete_volume_transfer(self, ctxt: RequestContext, transfer_id: str) -> None:
        cloud = self._cloud
        cloud.store.run(lambda c: transferring.withdraw(c, cloud, ctxt, transfer_id))

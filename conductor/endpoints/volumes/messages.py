"""The RPC endpoint of messages about volumes. The API has asked its policy."""

from __future__ import annotations

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.store.volumes import messages


class VolumeMessageEndpoint:
    """See ``conductor.rpc.VolumeMessageRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def delete_volume_message(self, ctxt: RequestContext, operation_id: int) -> None:
        self._cloud.store.run(lambda c: messages.delete(c, operation_id))

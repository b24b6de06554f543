"""The RPC endpoint of requests that the API refused."""

from __future__ import annotations

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.rpc.refusals import Refused
from conductor.store.ledger import refusals


class RefusalEndpoint:
    """See ``conductor.rpc.RefusalRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._store = cloud.store
        self._newest: int = cloud.conf.conductor.refusals_kept

    def refused(self, ctxt: RequestContext, refused: Refused) -> None:
        if self._newest and ctxt.project_id:
            self._store.run(lambda c: refusals.keep(c, ctxt, refused, self._newest))

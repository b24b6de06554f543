"""The RPC endpoint of requests that the API refused."""

from __future__ import annotations

from typing import Any

from common import codec
from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.messages import Refused
from conductor.store import refusals


class RefusalEndpoint:
    """Requests that the API refused."""

    def __init__(self, cloud: Cloud) -> None:
        self._store = cloud.store
        self._newest: int = cloud.conf.conductor.refusals_kept

    def refused(self, ctxt: RequestContext, refused: dict[str, Any]) -> None:
        """See ``ConductorClient.refused``."""
        if self._newest and ctxt.project_id:
            one = codec.load(Refused, refused)
            self._store.run(lambda c: refusals.keep(c, ctxt, one, self._newest))

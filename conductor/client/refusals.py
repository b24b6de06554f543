"""Calls about requests that the API refused."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import Refused
from conductor.rpc_api import RefusalRpc


class RefusalCalls(Base):
    """See ``conductor.rpc_api.RefusalRpc``."""

    def refused(self, ctxt: RequestContext, refused: Refused) -> None:
        """Record a refused request (best effort)."""
        self._rpc.cast(ctxt, RefusalRpc.refused, refused=refused)

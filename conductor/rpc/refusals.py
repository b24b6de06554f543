"""Calls: requests that the API refused."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.context import RequestContext
from common.rpc.typed import one_way


@dataclass(frozen=True)
class Refused:
    """A request that the API answered with an error."""

    method: str
    path: str
    status: int
    message: str
    """As it was answered."""
    received_at: datetime.datetime
    answered_at: datetime.datetime
    details: Mapping[str, Any] = field(default_factory=dict)
    """Details of the error, and the names of the caller: ``db.reads.ledger.refusals.ASKED_BY``."""


class RefusalRpc(Protocol):
    """Requests that the API refused."""

    @one_way
    def refused(self, ctxt: RequestContext, refused: Refused) -> None:
        """Record a refused request (best effort)."""

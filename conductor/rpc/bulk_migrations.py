"""Calls about migrations of many servers."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext
from common.resources.bulk_migrations import Steering


class BulkMigrationRpc(Protocol):
    """Migrations of many servers."""

    def drain(
        self,
        ctxt: RequestContext,
        host: str,
        at_once: int,
        *,
        live_only: bool,
        wait_seconds: int = 0,
    ) -> int:
        """Disable a host, and begin to move its servers to others; return the operation's id.

        ``live_only``: running servers that can't be moved while they run stay. ``wait_seconds``:
        for how long servers that find no host are tried again, however often. Raises
        HostNotFound; Conflict if it does not answer, or is being drained already.
        """

    def apply_rebalance(self, ctxt: RequestContext, limit: int, at_once: int) -> int:
        """Begin what ``rebalance`` plans now, at most so many moves; return the operation's id.

        Raises Unavailable; Conflict if a rebalance is open already.
        """

    def set_bulk_migration_state(
        self, ctxt: RequestContext, number: int, steering: Steering
    ) -> None:
        """Pause, resume or cancel a bulk migration; moves in progress end in any case.

        Raises NotFound; Conflict if it has ended or was cancelled.
        """

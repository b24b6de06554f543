"""What the ledger counts, once the transaction that wrote it is committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from common import clock
from common.metrics import table
from conductor.store.transactions import Transaction, after_commit


def ended(connection: Transaction, rows: Iterable[Any], state: str) -> None:
    """Count operations that end; a row has `action` and `started_at`."""
    found = [(row.action, row.started_at) for row in rows]

    def count() -> None:
        now = clock.utcnow()
        for action, started_at in found:
            table.OPERATIONS_ENDED.count(action, state)
            table.OPERATION_SECONDS.observe((now - started_at).total_seconds(), action, state)

    if found:
        after_commit(connection, count)


def fault(connection: Transaction, action: str, category: str) -> None:
    """Count the failure of an attempt."""
    after_commit(connection, lambda: table.OPERATION_FAULTS.count(action, category))


def retry(connection: Transaction, action: str) -> None:
    """Count a new attempt."""
    after_commit(connection, lambda: table.OPERATION_RETRIES.count(action))


def pause(connection: Transaction, seconds: float) -> None:
    """Measure for how long an operation is put off."""
    if seconds > 0:
        after_commit(connection, lambda: table.OPERATION_BACKOFF_SECONDS.observe(seconds))

"""Deletes the details of old operations in small batches, which bounds the size of the ledger."""

from __future__ import annotations

from common import clock
from common.log import logger
from conductor.cloud import Cloud
from conductor.store import call_answers
from conductor.store.hosts import registry
from conductor.store.ledger import history, refusals

LOG = logger(__name__)

#: operations per transaction, and transactions per run: other writers get their turn
BATCH = 500
BATCHES = 10

_DAY_SECONDS = 86_400


class History:
    """The periodic task; several conductors at once do no harm.

    It also deletes the rows of processes that others have replaced, and the answers of calls.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._store = cloud.store
        self._options = cloud.conf.conductor

    def tidy(self) -> None:
        """Delete what exceeds ``[conductor] history_days`` and ``history_operations``."""
        replaced = self._store.run(registry.delete_replaced)
        if replaced:
            LOG.info("Replaced, and not listed any more: %s.", ", ".join(replaced))
        self._store.run(call_answers.delete_old)
        days, newest = self._options.history_days, self._options.history_operations
        before = clock.after(-days * _DAY_SECONDS) if days else None
        total = 0
        for _ in range(BATCHES):
            count = self._store.run(lambda c: history.delete_old(c, before, newest or None, BATCH))
            total += count
            if count < BATCH:
                break
        if before is not None:
            self._store.run(lambda c: refusals.delete_old(c, before, BATCH))
        if total:
            LOG.info("The details of %d old operations are deleted.", total)

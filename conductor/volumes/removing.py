"""How often the removals of volumes and of snapshots are tried."""

from __future__ import annotations

from collections.abc import Callable

from common import clock
from common.log import logger
from common.messages.reports import Category, Failure
from conductor.cloud import Cloud
from conductor.engine import ends
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: seconds between two tries of what can't be removed, and their number: about a week
AGAIN_SECONDS, MOST_TRIES = 600.0, 1000


def again(
    cloud: Cloud,
    operation: Operation,
    failure: Failure,
    give_up: Callable[[Transaction], None],
    *,
    used: bool = False,
) -> None:
    """Have a removal tried again; ``give_up`` once that can't help.

    ``used``: a server's VM may name the disk for a while yet, so a refusal (protected) is retried.
    """
    LOG.warning("%s %s stays: %s", operation.resource_type, operation.resource_id, failure.message)
    is_final = failure.category is Category.PROTECTED and not used
    if is_final or operation.attempt >= MOST_TRIES:
        cloud.store.run(give_up)
        return
    slow = operation.attempt > cloud.conf.conductor.max_waits
    until = clock.after(AGAIN_SECONDS + cloud.conf.conductor.action_timeout_seconds)
    ends.again(
        cloud,
        operation,
        failure,
        lambda c: ledger.save(c, operation.id, deadline=until),
        AGAIN_SECONDS if slow else None,
    )

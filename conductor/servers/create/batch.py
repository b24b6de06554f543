"""One decision about ``min_count`` for builds of a create that begin one by one.

This happens if the decision for all of them failed, or their conductor ended before it was stored.
The first of them decides for all; the others wait for it.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Sequence

from common.log import logger
from conductor.cloud import Cloud
from conductor.store.ledger import batches
from conductor.store.records import Operation

LOG = logger(__name__)

#: seconds until a build checks again whether the first one has decided, which also ends the wait
WAIT_SECONDS = 5.0

Decide = Callable[[Sequence[Operation]], Iterable[object]]


class Together:
    """The batch of an undecided build."""

    def __init__(self, cloud: Cloud, decide: Decide) -> None:
        self._cloud = cloud
        self._decide = decide

    def resume(self, operation: Operation) -> None:
        """Make one scheduling decision for all builds of a create request.

        Only the first build of the request decides; the others wait for it. Afterwards each
        continues on its own. Raises Unavailable when no decision can be made.
        """
        name = self._cloud.name
        batch = self._cloud.store.run(
            lambda c: batches.take(c, operation, name, self._cloud.lease_seconds)
        )
        if not batch:
            self._cloud.store.run(lambda c: batches.wait(c, operation, name, WAIT_SECONDS))
            return
        try:
            # Claims may have been made that were never stored.
            for one in batch:
                self._cloud.placement.release(one.server_uuid)
            collections.deque(self._decide(batch), maxlen=0)
        except Exception:
            # The first one postpones itself.
            rest = batch[1:]
            self._cloud.store.run(lambda c: batches.release_leases(c, rest, name, WAIT_SECONDS))
            raise
        self._cloud.store.run(lambda c: batches.release_leases(c, batch, name))
        self._cloud.wake()
        LOG.info("Made one decision for %d builds of %s.", len(batch), operation.request_id)

"""Writes the notification ``instance.exists`` of each server at the end of an audit period.

One conductor does it, some servers in each transaction, which also stores its progress: the next
conductor continues from there. If several periods were missed, only the last one is audited.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
from collections.abc import Callable, Sequence

from common import clock
from common.log import logger
from common.resources.audit_periods import AuditPeriods, Window
from conductor.notifications import events, recorder
from conductor.store.outbox import notification_outbox as outbox
from conductor.store.servers import usage_audits
from conductor.store.servers.usage_audits import UsageAudit, Used
from conductor.store.transactions import Store, Transaction, after_commit

LOG = logger(__name__)

NAME = "usage_audit"
SECONDS = 60.0
#: servers in a transaction, and transactions in a row: other periodic tasks get their turn
PAGE, PAGES = 100, 10
#: pause before the next pages
MORE_SECONDS = 1.0
#: no page is written while more notifications wait: others would wait behind it
CROWD = 1000


class UsageAudits:
    """The periodic task, of one conductor at a time."""

    def __init__(
        self,
        store: Store,
        period: str,
        max_pending: int,
        wake: Callable[[], None],
        now: Callable[[], datetime.datetime] = clock.utcnow,
    ) -> None:
        """``wake`` is called after each transaction.

        Raises ValueError for what is no period.
        """
        self._store, self._wake, self._now = store, wake, now
        self._unit, self._periods = period, AuditPeriods.parse(period)
        # An audit never makes the outbox drop a notification.
        self._crowd = min(CROWD, max_pending // 2)
        self._page = max(1, min(PAGE, max_pending // 2))

    def look(self) -> float | None:
        """Write notifications of the last period's servers.

        Return the seconds until the next pages; None: the period is finished.
        """
        window = self._periods.last(self._now())
        for _ in range(PAGES):
            with self._store.read() as connection:
                known = usage_audits.find(connection, window)
                if known is not None and known.finished_at is not None:
                    return None
                if outbox.crowded(connection, self._crowd):
                    break
                after = known.last_server_id if known else 0
                found = usage_audits.page(connection, window, after, self._page)
            self._write_page(window, known or self._begin(window), found)
        return MORE_SECONDS

    def _begin(self, window: Window) -> UsageAudit:
        left = self._store.run(lambda c: usage_audits.begin(c, window, self._unit))
        for begin, end in left:
            LOG.error(
                "The usage audit from %s to %s was not finished; the next period is audited.",
                begin,
                end,
            )
        return UsageAudit(0, {}, None)

    def _write_page(self, window: Window, known: UsageAudit, found: Sequence[Used]) -> None:
        """Write these into the outbox, unless another conductor has done so."""
        counts = collections.Counter(known.servers_by_host)
        counts.update(one.host for one in found)
        is_last = len(found) < self._page
        last = found[-1].id if found else known.last_server_id

        def work(connection: Transaction) -> bool:
            ours = usage_audits.advance(connection, window, known, last, counts, finished=is_last)
            if ours and found:
                outbox.add(connection, self._rows(connection, window, found))
                after_commit(connection, self._wake)
            return ours

        if self._store.run(work) and is_last:
            total = counts.total()
            LOG.info("Usage audit from %s to %s: %d servers.", *window, total)

    def _rows(
        self, connection: Transaction, window: Window, found: Sequence[Used]
    ) -> list[dict[str, object]]:
        now = clock.utcnow()
        as_they_are = outbox.servers_of(connection, [one.uuid for one in found])
        event = recorder.Event(events.EXISTS, more={"audit_period": list(window)})
        return [
            recorder.row(
                dataclasses.replace(event, server_uuid=one.uuid, columns=as_they_are[one.uuid]),
                now,
            )
            for one in found
        ]

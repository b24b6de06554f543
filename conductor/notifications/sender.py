"""Sends the notifications of the outbox, in order, at least once: one conductor at a time.

The lease ``notifications`` is taken with each batch. A notification that is sent twice, as a
conductor died between sending and removing it, has the same ``message_id``.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from oslo_config import cfg

from common.errors import MicronovaError
from common.log import logger
from common.metrics import loops, table
from conductor.engine.periodic_thread import PeriodicThread
from conductor.notifications.bus import BusError, Message
from conductor.notifications.compose import Composer
from conductor.notifications.config import GROUP
from conductor.notifications.subject import Subject
from conductor.store.ledger import process_leases
from conductor.store.outbox import notification_outbox as outbox
from conductor.store.outbox.notification_outbox import Entry
from conductor.store.transactions import Store, Transaction

LOG = logger(__name__)

NAME = "notifications"
LEASE_SECONDS = 30.0
#: a batch ends after this, so that the lease doesn't expire before
BATCH_SECONDS = 10.0
BATCH = 100
#: how often a conductor looks for what others wrote
LOOK_SECONDS = 1.0
#: pauses while the bus takes nothing; the last one is repeated
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
#: after this many failures of the first notification, the next one is tried
SUSPECT = 5
#: attempts for a notification that fails other than by the bus
BREAKS = 3

Send = Callable[[str, Message], None]


@dataclass
class _Result:
    """What became of a batch."""

    sent: list[int] = field(default_factory=list)
    bad: dict[int, str] = field(default_factory=dict)
    failed: str | None = None
    """Why the bus took no more."""


class Sender:
    """One conductor's part in sending."""

    def __init__(self, conf: cfg.ConfigOpts, store: Store, name: str, send: Send) -> None:
        """``send`` puts a message on a topic of the bus."""
        self._store, self._name, self._send = store, name, send
        self._composer = Composer(conf, name)
        self._max_pending = int(conf[GROUP].max_pending)
        self._failures = 0
        self._breaks: dict[int, int] = {}
        self._turns = PeriodicThread(NAME, self._turn)
        table.NOTIFICATIONS_PENDING.watch(self._pending)
        table.NOTIFICATIONS_OLDEST.watch(self._oldest)
        self._bounds = outbox.Bounds(0, None)

    # --- life

    def start(self) -> None:
        """Begin to send."""
        self._turns.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Stop sending; unsent notifications remain in the outbox."""
        self._turns.stop(seconds)
        try:
            self._store.run(lambda c: process_leases.drop(c, NAME, self._name))
        except MicronovaError as error:
            LOG.warning("The lease of notifications will expire: %s", error.message)

    def wake(self) -> None:
        """Look now whether there is anything to send, unless the bus takes nothing."""
        if not self._failures:
            self._turns.wake()

    def _turn(self) -> float | None:
        """Send all there is; return the seconds until the next look, None when stopped."""
        if self._turns.stopped:
            return None
        try:
            self.send_all()
        except Exception:
            # The thread must survive any error: without it nothing would be sent.
            LOG.exception("Notifications could not be sent; trying again later.")
            loops.failed(NAME)
            return PAUSES[-1]
        loops.done(NAME, PAUSES[-1])
        if self._failures:
            return PAUSES[min(self._failures, len(PAUSES)) - 1]
        return LOOK_SECONDS

    # --- bound

    def bound(self) -> None:
        """Drop the oldest beyond the limit: a periodic task of every conductor."""
        dropped = self._store.run(lambda c: outbox.trim(c, self._max_pending))
        if dropped:
            table.NOTIFICATIONS_DROPPED.count(by=dropped)
            LOG.error(
                "%d notifications were dropped: the outbox is limited to %d.",
                *(dropped, self._max_pending),
            )
        with self._store.read() as connection:
            self._bounds = outbox.bounds(connection)

    def _pending(self) -> Mapping[tuple[str, ...], float]:
        return {(): float(self._bounds.pending)}

    def _oldest(self) -> Mapping[tuple[str, ...], float]:
        oldest = self._bounds.oldest
        return {} if oldest is None else {(): oldest.timestamp()}

    # --- sending

    def send_all(self) -> None:
        """Send until nothing is left, the bus takes no more, or another conductor sends."""
        with self._store.read() as connection:
            if not outbox.waits(connection):
                self._failures = 0
                return
        done = _Result()
        while not self._turns.stopped:
            entries = self._store.run(functools.partial(self._next, done=done))
            if not entries:
                return
            began = time.monotonic()
            with self._store.read() as connection:
                subjects = self._composer.subjects(connection, entries)
            done = self._deliver(entries, subjects, began)
            if done.failed is not None:
                break
        self._store.run(functools.partial(_settle, done=done))

    def _next(self, connection: Transaction, done: _Result) -> list[Entry]:
        """Remove what was sent, and return what follows; nothing where another one sends."""
        _settle(connection, done)
        if not process_leases.take(connection, NAME, self._name, LEASE_SECONDS):
            return []
        entries = outbox.first(connection, BATCH)
        if not entries:
            # The conductor that writes the next notification may send it at once.
            process_leases.drop(connection, NAME, self._name)
        return entries

    def _deliver(
        self, entries: Sequence[Entry], subjects: Mapping[int, Subject], began: float
    ) -> _Result:
        """Send these, as far as the bus takes them and the lease lasts."""
        done = _Result()
        for position, entry in enumerate(entries):
            if self._turns.stopped or time.monotonic() - began > BATCH_SECONDS:
                break
            if entry.id in done.sent:
                continue
            if self._try(entry, subjects[entry.id], done):
                continue
            following = entries[position + 1 : position + 2]
            if not self._is_culprit(entry, following, subjects, done):
                break
        return done

    def _try(self, entry: Entry, subject: Subject, done: _Result) -> bool:
        """Send one to all its topics; return whether the next one may follow."""
        try:
            messages = self._composer.messages(entry, subject)
        except Exception as error:  # noqa: BLE001 - it must not stop the others
            self._give_up(entry, f"It can't be shown: {error!r}", done)
            return True
        try:
            for topic, message in messages:
                self._send(topic, message)
        except BusError as error:
            self._failures += 1
            done.failed = str(error)
            table.NOTIFICATION_FAILURES.count()
            LOG.warning(
                "The notification bus doesn't take notification %d, %s: %s",
                *(entry.id, entry.event, error),
            )
            return False
        except Exception as error:  # noqa: BLE001 - it must not stop the others
            return self._broke(entry, error, done)
        self._failures = 0
        self._breaks.pop(entry.id, None)
        done.sent.append(entry.id)
        table.NOTIFICATIONS_SENT.count()
        return True

    def _broke(self, entry: Entry, error: Exception, done: _Result) -> bool:
        """Count a failure; give the notification up after ``BREAKS`` of them."""
        self._breaks[entry.id] = self._breaks.get(entry.id, 0) + 1
        if self._breaks[entry.id] >= BREAKS:
            self._give_up(entry, f"It can't be sent: {error!r}", done)
            return True
        LOG.warning(
            "Notification %d, %s, could not be sent: %r. Trying again.",
            *(entry.id, entry.event, error),
        )
        self._failures += 1
        done.failed = repr(error)
        return False

    def _is_culprit(
        self,
        entry: Entry,
        following: Sequence[Entry],
        subjects: Mapping[int, Subject],
        done: _Result,
    ) -> bool:
        """Return whether the bus takes the next one, so that it was this one's fault."""
        if self._failures % SUSPECT or not following:
            return False
        why = done.failed
        failures = self._failures
        probe = _Result()
        if not self._try(following[0], subjects[following[0].id], probe) or not probe.sent:
            self._failures = failures
            return False
        done.failed = None
        self._give_up(entry, f"The bus takes others, but not it: {why}", done)
        done.sent += probe.sent
        return True

    def _give_up(self, entry: Entry, why: str, done: _Result) -> None:
        """Set it aside: it must not keep others from being sent."""
        self._breaks.pop(entry.id, None)
        done.bad[entry.id] = why
        table.NOTIFICATIONS_SET_ASIDE.count()
        LOG.error(
            "Notification %d, %s of server %s, is set aside: %s",
            *(entry.id, entry.event, entry.server_uuid, why),
        )


def _settle(connection: Transaction, done: _Result) -> None:
    """Write down what became of a batch."""
    outbox.remove(connection, done.sent)
    outbox.set_aside(connection, done.bad)

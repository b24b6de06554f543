"""Sends each operation that this conductor ends, a moment later, in a thread of its own.

Only its number is kept in memory; the rest is read from the ledger. A conductor that is killed
loses those of its last seconds, which the ledger still has.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from oslo_config import cfg

from common.errors import ConfigurationError
from common.log import logger
from common.metrics import loops, table
from conductor.engine.periodic_thread import PeriodicThread
from conductor.store.change_events import Ended, Notice
from conductor.store.ledger import stories
from conductor.store.transactions import Store, Transaction, after_commit
from conductor.tracing.config import GROUP
from conductor.tracing.spans import Span, spans_of, wanted

LOG = logger(__name__)

NAME = "tracing"
#: how long an operation's last steps are waited for, as agents report them in batches
SETTLE_SECONDS = 2.0
#: operations that wait to be sent; beyond this number the oldest are dropped
MOST = 10_000
BATCH = 50
#: pauses while the endpoint takes nothing; the last one is repeated
PAUSES = (1.0, 5.0, 15.0, 60.0)
#: after so many failures a batch is dropped: seven minutes
GIVE_UP = 10
_LOOK_SECONDS = 60.0


class Sends(Protocol):
    """What sends spans."""

    def send(self, spans: Sequence[Span]) -> bool:
        """Return whether they were taken."""
        ...

    def close(self) -> None:
        """Let connections go."""
        ...


class Tracer:
    """The traces of one conductor; a recorder of its transactions."""

    def __init__(
        self,
        store: Store,
        exporter: Sends,
        ratio: float,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        self._store, self._exporter, self._ratio = store, exporter, ratio
        self._settle = settle_seconds
        #: (when it may be read, operation), in order
        self._waiting: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()
        self._failures, self._not_before = 0, 0.0
        self._turns = PeriodicThread(NAME, self._turn)

    @classmethod
    def of(cls, conf: cfg.ConfigOpts, store: Store, name: str) -> Tracer | None:
        """Return that of a conductor of this name; None where traces are off.

        Raises ConfigurationError where OpenTelemetry is not installed.
        """
        options = conf[GROUP]
        if not options.endpoint:
            return None
        try:
            from conductor.tracing.export import Exporter
        except ImportError as error:
            raise ConfigurationError(
                f"[{GROUP}] endpoint needs OpenTelemetry: pip install 'micronova[tracing]' "
                f"({error})."
            ) from error
        exporter = Exporter(options.endpoint, options.service_name, name)
        return cls(store, exporter, options.ratio)

    # --- the recorder

    def write(self, connection: Transaction, noted: Sequence[Notice]) -> None:
        """Remember which operations the transaction ends, once it is committed."""
        ended = [one.operation_id for one in noted if isinstance(one, Ended)]
        if ended:
            after_commit(connection, lambda: self.add(ended))

    def lost(self, error: Exception) -> None:
        """Nothing is written here that could fail."""

    def add(self, operation_ids: Sequence[int]) -> None:
        """Send these, once their last reports are there."""
        due = time.monotonic() + self._settle
        with self._lock:
            self._waiting.extend((due, number) for number in operation_ids)
            over = len(self._waiting) - MOST
            for _ in range(over):
                self._waiting.popleft()
        self._turns.wake()
        if over > 0:
            table.TRACES_DROPPED.count(by=over)

    # --- life

    def start(self) -> None:
        """Begin to send."""
        self._turns.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Send all collected traces, without waiting for anything, and end."""
        self._turns.stop(seconds)
        self._exporter.close()

    def _turn(self) -> float | None:
        """Send what is due; return the seconds until something is. None: it is over."""
        stopped = self._turns.stopped
        with self._lock:
            numbers = self._due(whatever=stopped)
        sent = self._send(numbers) if numbers else True
        with self._lock:
            if stopped and not (sent and self._waiting):
                return None
            return self._pause()

    def _pause(self) -> float:
        """Return the seconds until there is something to do."""
        if not self._waiting:
            return _LOOK_SECONDS
        return max(0.0, max(self._waiting[0][0], self._not_before) - time.monotonic())

    def _due(self, *, whatever: bool) -> list[int]:
        """Take what may be read now, or ``whatever`` waits, out of what waits."""
        now = time.monotonic()
        taken: list[int] = []
        if now < self._not_before and not whatever:
            return taken
        while self._waiting and len(taken) < BATCH:
            if self._waiting[0][0] > now and not whatever:
                break
            taken.append(self._waiting.popleft()[1])
        return taken

    def _send(self, numbers: Sequence[int]) -> bool:
        """Send these operations, or put them back; return whether they were taken."""
        try:
            spans = self._spans(numbers)
            sent = not spans or self._exporter.send(spans)
        except Exception:
            # The collector's client raises what it likes; the operations are put back.
            LOG.exception("Traces could not be sent; trying again later.")
            sent = False
        if sent:
            self._failures = 0
            table.TRACES_SENT.count(by=len(numbers))
            loops.done(NAME, _LOOK_SECONDS)
            return True
        self._failed(numbers)
        return False

    def _failed(self, numbers: Sequence[int]) -> None:
        self._failures += 1
        table.TRACE_FAILURES.count()
        loops.failed(NAME)
        pause = PAUSES[min(self._failures, len(PAUSES)) - 1]
        with self._lock:
            self._not_before = time.monotonic() + pause
            if self._failures < GIVE_UP:
                self._waiting.extendleft((0.0, number) for number in reversed(numbers))
                return
            # The content may be the cause, not the endpoint: continue with the others.
            self._failures = 0
        table.TRACES_DROPPED.count(by=len(numbers))
        LOG.error("The traces of %d operations were dropped.", len(numbers))

    def _spans(self, numbers: Sequence[int]) -> list[Span]:
        with self._store.read() as connection:
            found = stories.traced(connection, numbers)
        spans: list[Span] = []
        for one in found:
            try:
                spans += spans_of(one) if wanted(one, self._ratio) else ()
            except Exception:
                # It must not keep the others from being sent.
                LOG.exception("Operation %d: its trace can't be built.", one.story.operation.id)
        return spans

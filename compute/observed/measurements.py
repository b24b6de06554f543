"""What hypervisors measured, read once a minute at most, however many users ask.

All APIs and conductors ask the worker that carries the host, so the limit is kept here: one call
for a server, a node or a storage in a minute, over all periods. The first look at another period
isn't kept waiting: it is a call at once, and later ones wait a minute longer for it. So in any
span there are as many calls as minutes, and one more of each period at the most. A longer period
changes slowly and is read less often.
"""

from __future__ import annotations

import collections
import datetime
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from common.errors import Unavailable
from common.messages.measurements import Measured, Period
from common.messages.questions import Measure
from compute.hypervisor.port import Hypervisor, HypervisorError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: between two calls about one server, node or storage
PACE_SECONDS = 60.0
#: an answer is that old at most, even of a period whose intervals are days
OLDEST_SECONDS = 3600.0
#: answers that are kept, of some 15 KiB each; those used longest ago are dropped first
MOST_ANSWERS = 2000
#: threads that read at once: the worker's other threads take commands
AT_ONCE = 4
#: a question waits so long for a free thread, and for another question of the same server
THREAD_SECONDS, SAME_SECONDS = 1.0, 5.0

Subject = tuple[str, str, int | str]
_Key = tuple[Period, datetime.datetime | None]


@dataclass
class _Answer:
    """What a call came to, and when."""

    outcome: Measured | HypervisorError
    at: float

    def result(self) -> Measured:
        if isinstance(self.outcome, Measured):
            return self.outcome
        raise HypervisorError(self.outcome.category, self.outcome.message)


@dataclass
class _Known:
    """The answers about one subject."""

    reading: threading.Lock = field(default_factory=threading.Lock)
    answers: dict[_Key, _Answer] = field(default_factory=dict)
    paced_until: float = float("-inf")
    """A minute for each call: before that none is due."""

    def fit(self, wanted: Measure, now: float) -> _Answer | None:
        """Return the answer that will do; None: the hypervisor is to be asked."""
        known = self.answers.get(_key(wanted))
        if known is None:
            return None
        age, lasts = now - known.at, _lasts(wanted.period)
        if isinstance(known.outcome, Measured) and age < lasts:
            return known
        # Not refreshed in the minutes of other calls, but for at most as long again: periods
        # that are looked at all the time don't keep others from being refreshed.
        return known if now < self.paced_until and age < 2 * lasts else None


class Measurements:
    """The measurements of a worker's clusters; threads may share it."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        *,
        most_answers: int = MOST_ANSWERS,
        thread_seconds: float = THREAD_SECONDS,
    ) -> None:
        self._now = now
        self._most_answers, self._thread_seconds = most_answers, thread_seconds
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[Subject, _Known] = collections.OrderedDict()
        self._threads = threading.BoundedSemaphore(AT_ONCE)

    def read(self, hypervisor: Hypervisor, wanted: Measure) -> Measured:
        """Return measurements, as known or by one call.

        Raises HypervisorError, also for a minute after a call that failed; Unavailable while
        too many others are read.
        """
        known = self._subject(hypervisor.cluster, wanted)
        answer = known.fit(wanted, self._now())
        if answer is None:
            with self._turn(known):
                # The question that had the turn before may have been the same.
                answer = known.fit(wanted, self._now()) or self._ask(hypervisor, wanted, known)
        return answer.result()

    def _ask(self, hypervisor: Hypervisor, wanted: Measure, known: _Known) -> _Answer:
        now = self._now()
        known.paced_until = max(known.paced_until, now) + PACE_SECONDS
        outcome: Measured | HypervisorError
        try:
            outcome = hypervisor.measure(wanted)
        except HypervisorError as error:
            outcome = error
            # What is well again is seen within a minute, however many periods failed.
            known.paced_until = now + PACE_SECONDS
        # Those of the VMID's former owner go.
        same = {key: one for key, one in known.answers.items() if key[1] == wanted.since}
        answer = _Answer(outcome, self._now())
        known.answers = {**same, _key(wanted): answer}
        self._drop()
        return answer

    @contextmanager
    def _turn(self, known: _Known) -> Iterator[None]:
        if not self._threads.acquire(timeout=self._thread_seconds):
            raise Unavailable("Too many measurements are being read; ask again.")
        try:
            if not known.reading.acquire(timeout=SAME_SECONDS):
                raise Unavailable("The hypervisor is slow to answer with measurements; ask again.")
            try:
                yield
            finally:
                known.reading.release()
        finally:
            self._threads.release()

    def _subject(self, cluster: str, wanted: Measure) -> _Known:
        what: int | str = wanted.node if wanted.storage is None else wanted.storage
        subject = (cluster, wanted.node, what)
        if wanted.vmid is not None:
            subject = (cluster, "", wanted.vmid)  # wherever it runs
        with self._lock:
            known = self._known.setdefault(subject, _Known())
            self._known.move_to_end(subject)
            return known

    def _drop(self) -> None:
        with self._lock:
            count = sum(len(one.answers) for one in self._known.values())
            while max(count, len(self._known)) > self._most_answers and len(self._known) > 1:
                _, dropped = self._known.popitem(last=False)
                count -= len(dropped.answers)


def _key(wanted: Measure) -> _Key:
    return wanted.period, wanted.since


def _lasts(period: Period) -> float:
    """Return for how many seconds an answer is current."""
    half = period.resolution_seconds / 2
    return min(max(PACE_SECONDS, half), OLDEST_SECONDS)

"""Asks the scheduler for single builds: those that are alike, and come while it decides on one,
are asked for together by one message and one claim."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Protocol

from common.context import RequestContext
from common.errors import Unavailable
from common.messages.scheduling import Alternate, Decision, RequestSpec
from common.rpc import UNKNOWN


class Scheduler(Protocol):
    """The part of ``scheduler.client.SchedulerClient`` that is used."""

    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...] = ()
    ) -> Decision:
        """Choose a host, and claim it."""

    def select_many(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...]
    ) -> list[Decision]:
        """Choose hosts for servers that are alike, and claim them together."""


class Undecided(Exception):
    """The scheduler answered that it can't decide on all together: each asks alone.

    Some of them may have a claim.
    """


class _Asked:
    """A request, and the answer to it."""

    def __init__(self, ctxt: RequestContext, request: RequestSpec) -> None:
        self.ctxt, self.request = ctxt, request
        self.turn = threading.Event()
        """Set when it is answered, or is to ask for all that wait."""
        self.answer: Decision | Exception | None = None


@dataclasses.dataclass
class _Line:
    """Those of one kind that wait while the scheduler is asked for others of it."""

    kind: RequestSpec
    waiting: list[_Asked] = dataclasses.field(default_factory=list)


class Selects:
    """Calls of ``select`` by several threads.

    Nothing waits for others to come; each gets its own decision.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._lock = threading.Lock()
        self._lines: list[_Line] = []

    def select(self, ctxt: RequestContext, request: RequestSpec) -> Decision:
        """Return the decision on a build. Raises as ``SchedulerClient.select``, and Undecided."""
        mine = _Asked(ctxt, request)
        line, first = self._join(mine)
        if not first:
            mine.turn.wait()
        if mine.answer is None:
            try:
                self._ask([mine] if first else self._all_of(line))
            finally:
                self._pass_on(line)
        if isinstance(mine.answer, Decision):
            return mine.answer
        raise mine.answer or Undecided

    def _join(self, mine: _Asked) -> tuple[_Line, bool]:
        """Return its line, and whether it is the first, which asks at once."""
        kind = mine.request.kind
        with self._lock:
            for line in self._lines:
                if line.kind == kind:
                    line.waiting.append(mine)
                    return line, False
            self._lines.append(_Line(kind))
            return self._lines[-1], True

    def _all_of(self, line: _Line) -> list[_Asked]:
        with self._lock:
            together, line.waiting = line.waiting, []
            return together

    def _pass_on(self, line: _Line) -> None:
        """Have the next one ask, for itself and those behind it."""
        with self._lock:
            if line.waiting:
                line.waiting[0].turn.set()
            else:
                self._lines.remove(line)

    def _ask(self, together: Sequence[_Asked]) -> None:
        try:
            answers: Sequence[Decision | Exception] = self._decisions(together)
        except Exception as error:  # noqa: BLE001 - raised where each of them waits
            answered = isinstance(error, Unavailable) and error.details.get("outcome") != UNKNOWN
            alone = answered and len(together) > 1
            answers = [Undecided() if alone else error for _ in together]
        for one, answer in zip(together, answers, strict=True):
            one.answer = answer
            one.turn.set()

    def _decisions(self, together: Sequence[_Asked]) -> list[Decision]:
        head = together[0]
        if len(together) == 1:
            return [self._scheduler.select(head.ctxt, head.request)]
        # The first has waited longest: what is claimed for it in time is for all.
        requests = tuple(
            dataclasses.replace(one.request, until=head.request.until, by_itself=True)
            for one in together
        )
        decisions = self._scheduler.select_many(head.ctxt, requests)
        if [one.server_uuid for one in decisions] != [one.server_uuid for one in requests]:
            raise Unavailable("The scheduler decided on other servers.")
        return decisions

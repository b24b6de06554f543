"""Asks the scheduler for single builds: those that are alike, and come while it decides on one,
are asked for together by one message and one claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from common.context import RequestContext
from common.errors import Unavailable
from common.messages.scheduling import Alternate, Decision, RequestSpec
from common.rpc.gathering import Combining, is_unknown

#: builds that one message asks for
MOST = 64


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


@dataclasses.dataclass(frozen=True)
class _Asked:
    """A request of a build."""

    ctxt: RequestContext
    request: RequestSpec


class Selects:
    """Calls of ``select`` by several threads.

    Nothing waits for others to come; each gets its own decision.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._combining = Combining[_Asked, Decision](self._ask, MOST)

    def select(self, ctxt: RequestContext, request: RequestSpec) -> Decision:
        """Return the decision on a build. Raises as ``SchedulerRpc.select``, and Undecided."""
        return self._combining.do(_Asked(ctxt, request), request.kind)

    def _ask(self, together: Sequence[_Asked]) -> Sequence[Decision | Exception]:
        try:
            return self._decisions(together)
        except Exception as error:  # noqa: BLE001 - raised where each of them waits
            answered = isinstance(error, Unavailable) and not is_unknown(error)
            alone = answered and len(together) > 1
            return [Undecided() if alone else error for _ in together]

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

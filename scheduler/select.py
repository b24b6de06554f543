"""Choose hosts and claim them in placement."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from oslo_config import cfg

from common import clock
from common.errors import GenerationConflict, Unavailable
from common.log import logger
from common.messages.scheduling import LEFT, Alternate, Decision, RequestSpec
from placement.client import PlacementClient
from placement.messages import NewClaim
from scheduler.columnar.forms import counted_together
from scheduler.decide import whatif
from scheduler.decide.choose import Choice, Filter, Weigher, choose
from scheduler.explain.outcome import Outcomes
from scheduler.filters.resources import wanted
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.view import Offered, View

LOG = logger(__name__)

#: how often candidates are read when other requests took those of the last round
_ROUNDS = 2
#: with fewer places left for a server, the decisions of a process are made one at a time: each
#: sees what those before it took
_SCARCE = 32
#: how long one waits for those before it
_TURN_SECONDS = 5.0


#: the result of an attempt to claim, as stored with the decision
CLAIMED = "claimed"
TAKEN = "taken by another"
FULL = "had no room left"
CHANGED = "changed by others each time"
NOT_TOGETHER = "not to be had for all at once"


class Clock(Protocol):
    """A monotonic clock, in seconds."""

    def __call__(self) -> float: ...


class Decider:
    """Makes decisions for one scheduler process."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        placement: PlacementClient,
        view: View,
        filters: Mapping[str, Filter],
        weighers: Mapping[str, tuple[Weigher, float]],
        timer: Clock = time.monotonic,
    ) -> None:
        self._attempts: int = conf.scheduler.claim_attempts
        self._placement = placement
        self._view = view
        self._filters = filters
        self._weighers = weighers
        self._counted = counted_together(weigh for weigh, _ in weighers.values())
        self._outcomes = Outcomes(conf, filters)
        self._keep = max(self._outcomes.ranked, self._attempts)
        self._timer = timer
        self._turn = threading.Lock()
        self._is_scarce = False

    def decide(self, request: RequestSpec, alternates: tuple[Alternate, ...]) -> Decision:
        """Choose and claim a host: one of the alternates, else the best of new candidates.

        Raises Unavailable when other requests claimed every host that was tried: a later decision
        may find room, or a reason why there is none.
        """
        begun = self._timer()
        claims: list[dict[str, Any]] = []
        decision = self._claim_alternate(request, alternates, claims)
        for _ in range(_ROUNDS):
            decision = decision or self._claim_best(request, claims)
        if decision is None:
            raise Unavailable("Other requests took the room of every host that was tried.")
        if decision.host is None:
            LOG.warning("%s", decision.reason)
        else:
            LOG.info("Host %s of %d is claimed.", decision.host, decision.considered)
        return dataclasses.replace(
            decision, claims=tuple(claims), seconds=round(self._timer() - begun, 6)
        )

    def decide_many(self, requests: Sequence[RequestSpec]) -> list[Decision]:
        """Choose for all servers of one create, or of creates that are alike, in one pass, and
        claim for them together.

        The requests differ in their servers only. If a concurrent request takes some of the
        resources, each is decided on its own.
        """
        begun = self._timer()
        with self._in_turn():
            hosts, choices = self._choices(requests)
            chosen = [(request, choice) for request, choice in choices if choice.ranked]
            enough = len(chosen) >= requests[0].least
            claimed = not (chosen and enough) or self._claim_together(chosen)
        if not claimed:
            tried = {one.server_uuid: choice.ranked[0].host for one, choice in chosen}
            return self._one_by_one(requests, tried)
        lost = self._lost([request for request, choice in choices if not choice.ranked])
        seconds = round((self._timer() - begun) / len(requests), 6)
        LOG.info("%d of %d servers have a host.", len(chosen), len(requests))
        found = self._claimed if enough else self._left
        return [
            dataclasses.replace(
                found(request, choice, len(hosts), brief=number > 0 and not request.by_itself),
                seconds=seconds,
            )
            if choice.ranked
            else lost[request.server_uuid]
            for number, (request, choice) in enumerate(choices)
        ]

    def _choices(
        self, requests: Sequence[RequestSpec]
    ) -> tuple[HostColumns, list[tuple[RequestSpec, Choice]]]:
        """Choose for each request among the candidates, or among all hosts if these don't do."""
        offered = self._beside(self._view.candidates(requests[0]))
        while True:
            tried = whatif.place(
                offered.hosts, requests, self._filters, self._weighers, self._keep
            )
            choices = [(one.request, one.choice) for one in tried]
            if offered.whole or all(choice.passed for _, choice in choices):
                return offered.hosts, choices
            offered = self._beside(self._view.candidates(requests[0], wide=True))

    def _one_by_one(
        self, requests: Sequence[RequestSpec], tried: Mapping[str, Host]
    ) -> list[Decision]:
        """Decide one after the other; ``tried`` are the hosts that were chosen for all together.

        Each sees the places that those before it took in their group.
        """
        joined: Counter[str] = Counter()
        decisions = []
        for request in requests:
            group = request.group and request.group.with_members(joined)
            decision = self.decide(dataclasses.replace(request, group=group), ())
            if request.server_uuid in tried:
                first = _claim_entry(tried[request.server_uuid], NOT_TOGETHER)
                decision = dataclasses.replace(decision, claims=(first, *decision.claims))
            decisions.append(decision)
            joined.update(host for host in (decisions[-1].host,) if host is not None)
        return decisions

    def _claimed(
        self, request: RequestSpec, choice: Choice, considered: int, *, brief: bool
    ) -> Decision:
        won = self._outcomes.won(request, choice, 0, considered, brief=brief)
        return dataclasses.replace(won, claims=(_claim_entry(choice.ranked[0].host, CLAIMED),))

    def _left(
        self, request: RequestSpec, choice: Choice, considered: int, *, brief: bool
    ) -> Decision:
        """Return the decision on a server that has a host where others of its create have none."""
        won = self._outcomes.won(request, choice, 0, considered, brief=brief)
        left = (_claim_entry(choice.ranked[0].host, LEFT),)
        return dataclasses.replace(won, host=None, uuid=None, alternates=(), claims=left)

    def _lost(self, requests: Sequence[RequestSpec]) -> dict[str, Decision]:
        """Return decisions without a host for servers that are alike: explained once."""
        if not requests:
            return {}
        hosts = self._view.everything(wanted(requests[0]))
        choice = choose(hosts, requests[0], self._filters, {}, keep=0)
        decision = self._outcomes.nowhere(requests[0], choice, hosts)
        LOG.warning("%s", decision.reason)
        others = [self._outcomes.again(request, decision) for request in requests[1:]]
        return {one.server_uuid: one for one in (decision, *others)}

    def _claim_together(self, chosen: Sequence[tuple[RequestSpec, Choice]]) -> bool:
        _check_time(chosen[0][0])
        return self._placement.claim_many(
            [
                NewClaim(
                    request.server_uuid,
                    choice.ranked[0].host.facts.uuid,
                    wanted(request),
                    request.project_id,
                    request.user_id,
                )
                for request, choice in chosen
            ]
        )

    def _claim_alternate(
        self,
        request: RequestSpec,
        alternates: tuple[Alternate, ...],
        claims: list[dict[str, Any]],
    ) -> Decision | None:
        for position, alternate in enumerate(alternates):
            hosts = self._view.candidates(request, of=alternate.uuid).hosts
            if not choose(hosts, request, self._filters, {}).ranked:
                continue
            host = hosts.host(0)
            if self._claim(request, [host], claims) is not None:
                rest = alternates[position + 1 :]
                return Decision(request.server_uuid, host.name, alternate.uuid, rest, 1)
        return None

    def _claim_best(self, request: RequestSpec, claims: list[dict[str, Any]]) -> Decision | None:
        """Claim the best host, or explain why there is none; None when all tried were taken."""
        with self._in_turn():
            offered = self._beside(self._view.candidates(request))
            choice = self._choose(offered, request)
            if choice.ranked:
                return self._claim_of(offered, choice, request, claims)
        # Only now, to explain it: exhausted hosts are no candidates.
        hosts = self._view.everything(wanted(request))
        why = choose(hosts, request, self._filters, {}, keep=0)
        if why.passed and not offered.whole:
            offered = self._beside(self._view.candidates(request, wide=True))
            choice = self._choose(offered, request)
        if not choice.ranked:
            return self._outcomes.nowhere(request, why, hosts)
        return self._claim_of(offered, choice, request, claims)

    def _claim_of(
        self,
        offered: Offered,
        choice: Choice,
        request: RequestSpec,
        claims: list[dict[str, Any]],
    ) -> Decision | None:
        """Claim the best of the ranked hosts that still has room; None: none of them has."""
        hosts = [weighed.host for weighed in choice.ranked[: self._attempts]]
        position = self._claim(request, hosts, claims)
        if position is None:
            return None
        return self._outcomes.won(request, choice, position, len(offered.hosts))

    @contextlib.contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Wait for the decisions of this process that are under way, while little room is left."""
        has_turn = self._is_scarce and self._turn.acquire(timeout=_TURN_SECONDS)
        try:
            yield
        finally:
            if has_turn:
                self._turn.release()

    def _beside(self, offered: Offered) -> Offered:
        """Add the other hosts if a weigher needs them: one more request for each class."""
        if not self._counted or not len(offered.hosts):
            return offered
        whole = self._view.everything(self._counted)
        return dataclasses.replace(offered, hosts=offered.hosts.beside(whole))

    def _choose(self, offered: Offered, request: RequestSpec) -> Choice:
        choice = choose(offered.hosts, request, self._filters, self._weighers, self._keep)
        self._is_scarce = (
            choice.passed < _SCARCE
            and offered.hosts.places(choice.positions, wanted(request)) < _SCARCE
        )
        return choice

    def _claim(
        self, request: RequestSpec, hosts: Sequence[Host], claims: list[dict[str, Any]]
    ) -> int | None:
        """Claim the first of the hosts that has room; return its position, None where none has.

        Raises Unavailable when the caller has given up waiting, so that nobody would own the
        claim, and when the server still has a claim of a decision that was given up so.
        """
        _check_time(request)
        try:
            claimed = self._placement.claim_first(
                request.server_uuid,
                [host.facts.uuid for host in hosts],
                wanted(request),
                request.project_id,
                request.user_id,
            )
        except GenerationConflict as error:
            if self._placement.allocations_of(request.server_uuid).by_provider:
                raise Unavailable("The claim of an earlier decision is in the way.") from error
            claims.append(_claim_entry(hosts[0], CHANGED, 1))
            return None
        if claimed.provider is None:
            # One claim that was lost, whatever the number of hosts that it named.
            claims.append(_claim_entry(hosts[0], TAKEN, claimed.conflicts))
            claims.extend(_claim_entry(host, FULL) for host in hosts[1:])
            return None
        position = [host.facts.uuid for host in hosts].index(claimed.provider)
        claims.extend(_claim_entry(host, FULL) for host in hosts[:position])
        claims.append(_claim_entry(hosts[position], CLAIMED, claimed.conflicts))
        return position


def _claim_entry(host: Host, result: str, conflicts: int = 0) -> dict[str, Any]:
    """Return an attempt to claim, in the form stored with the decision."""
    return {"host": host.name, "result": result, "generation_retries": conflicts}


def _check_time(request: RequestSpec) -> None:
    if request.until is not None and request.until <= clock.utcnow():
        raise Unavailable("The decision comes too late.")

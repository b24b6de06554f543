"""A decision with I/O around it: ask placement, choose, claim, and tell why."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from oslo_config import cfg

from common import clock
from common.errors import GenerationConflict, Unavailable
from common.log import logger
from common.messages import Alternate, Decision, Requested
from placement.client import PlacementClient
from placement.messages import Candidates
from scheduler import explain
from scheduler.choose import Choice, Filter, Weigher, choose
from scheduler.filters.resources import wanted
from scheduler.hosts import Host, HostTable
from scheduler.nearest import nearest

LOG = logger(__name__)


class Clock(Protocol):
    """A monotonic clock, in seconds."""

    def __call__(self) -> float: ...


class Decider:
    """Makes decisions for one scheduler process."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        placement: PlacementClient,
        table: HostTable,
        filters: Mapping[str, Filter],
        weighers: Mapping[str, tuple[Weigher, float]],
        timer: Clock = time.monotonic,
    ) -> None:
        self._options = conf.scheduler
        self._placement = placement
        self._table = table
        self._filters = filters
        self._weighers = weighers
        self._timer = timer

    def decide(self, request: Requested, alternates: tuple[Alternate, ...]) -> Decision:
        """Choose and claim: first the alternates, then anew, then anew once more."""
        begun = self._timer()
        claims: list[dict[str, str]] = []
        decision = self._claim_alternate(request, alternates, claims)
        if decision is None:
            decision = self._claim_best(request, claims)
        if decision.host is None and claims and claims[-1]["result"] != "claimed":
            # Every choice was taken by somebody else meanwhile: look again, once.
            decision = self._claim_best(request, claims)
        if decision.host is None:
            LOG.warning("%s", decision.reason)
        else:
            LOG.info("Host %s of %d is claimed.", decision.host, decision.considered)
        return dataclasses.replace(
            decision, claims=tuple(claims), seconds=round(self._timer() - begun, 6)
        )

    def _claim_alternate(
        self,
        request: Requested,
        alternates: tuple[Alternate, ...],
        claims: list[dict[str, str]],
    ) -> Decision | None:
        known = self._table.all(clock.utcnow())
        for position, alternate in enumerate(alternates):
            host = known.get(alternate.uuid)
            if host is None or not choose([host], request, self._live_filters(), {}).ranked:
                continue
            if self._claim(request, host, claims):
                rest = alternates[position + 1 :]
                return Decision(request.server_uuid, host.name, alternate.uuid, rest, 1)
        return None

    def _live_filters(self) -> dict[str, Filter]:
        """All but the count of resources, which the claim itself checks."""
        return {name: f for name, f in self._filters.items() if name != "resources"}

    def _claim_best(self, request: Requested, claims: list[dict[str, str]]) -> Decision:
        hosts = self._candidates(request)
        choice = choose(hosts, request, self._filters, self._weighers)
        attempts = self._options.claim_attempts
        for position, weighed in enumerate(itertools.islice(choice.ranked, attempts)):
            if self._claim(request, weighed.host, claims):
                return self._won(request, choice, position, len(hosts))
        if not choice.ranked:
            hosts, choice = self._all_refused(request)
        return self._nowhere(request, choice, hosts)

    def _candidates(self, request: Requested) -> list[Host]:
        found = self._placement.candidates(wanted(request), limit=self._options.candidates)
        return self._join(found)

    def _all_refused(self, request: Requested) -> tuple[list[Host], Choice]:
        """Every host with what placement knows of it, to say why not: one query a class.

        Only when there is no host; hosts without room are no candidates and have no numbers yet.
        """
        merged: dict[str, Host] = {}
        for resource_class in wanted(request):
            found = self._placement.candidates({resource_class: 1}, limit=self._options.candidates)
            merged.update({host.facts.uuid: host for host in self._join(found)})
        for uuid, host in self._table.all(clock.utcnow()).items():
            merged.setdefault(uuid, host)
        hosts = list(merged.values())
        return hosts, choose(hosts, request, self._filters, {})

    def _join(self, found: Candidates) -> list[Host]:
        known = self._table.all(clock.utcnow())
        return [
            dataclasses.replace(
                known[provider.uuid],
                capacity={name: one.capacity for name, one in provider.resources.items()},
                used={name: one.used for name, one in provider.resources.items()},
                traits=provider.traits,
            )
            for provider in found.providers.values()
            if provider.uuid in known
        ]

    def _claim(self, request: Requested, host: Host, claims: list[dict[str, str]]) -> bool:
        """Whether the host could be claimed.

        Raises Unavailable where a claim would be nobody's, as who asked has given up waiting,
        and where that of an earlier decision, which was given up so, is in the way.
        """
        if request.until is not None and request.until <= clock.utcnow():
            raise Unavailable("The decision comes too late.")
        try:
            won = self._placement.claim(
                request.server_uuid,
                host.facts.uuid,
                wanted(request),
                request.project_id,
                request.user_id,
            )
        except GenerationConflict as error:
            if self._placement.allocations_of(request.server_uuid).by_provider:
                raise Unavailable("The claim of an earlier decision is in the way.") from error
            won = False
        claims.append({"host": host.name, "result": "claimed" if won else "taken by another"})
        return won

    def _won(self, request: Requested, choice: Choice, position: int, considered: int) -> Decision:
        chosen = choice.ranked[position].host
        following = choice.ranked[position + 1 : position + 1 + self._options.alternates]
        return Decision(
            request.server_uuid,
            chosen.name,
            chosen.facts.uuid,
            tuple(
                Alternate(item.host.name, item.host.facts.uuid, round(item.total, 4))
                for item in following
            ),
            considered,
            self._kept(choice.refused),
            {
                item.host.name: {**item.scores, "total": round(item.total, 4)}
                for item in choice.ranked[: self._options.scores_kept]
            },
        )

    def _nowhere(self, request: Requested, choice: Choice, hosts: Sequence[Host]) -> Decision:
        if choice.ranked:
            suggestion, reason = None, explain.all_taken(len(choice.ranked))
        else:
            suggestion = nearest(hosts, request, self._filters)
            reason = explain.sentence(len(hosts), choice.refused, suggestion)
        return Decision(
            request.server_uuid,
            None,
            considered=len(hosts),
            refused=self._kept(choice.refused),
            reason=reason,
            suggestion=suggestion,
        )

    def _kept(self, refused: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
        room = self._options.reasons_kept
        kept: dict[str, dict[str, str]] = {}
        for name, hosts in refused.items():
            kept[name] = dict(_first(hosts.items(), room))
            room -= len(kept[name])
        return kept


def _first(items: Iterable[tuple[str, str]], count: int) -> Iterable[tuple[str, str]]:
    return itertools.islice(items, max(count, 0))

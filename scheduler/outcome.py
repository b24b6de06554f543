"""A choice as a ``Decision``: what is kept of it, and why nowhere."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence

from oslo_config import cfg

from common.messages.scheduling import Alternate, Decision, Requested
from scheduler import explain
from scheduler.choose import Choice, Filter, Refusals
from scheduler.fleet import Fleet
from scheduler.nearest import nearest

#: filter → {reason: hosts}
Reasons = dict[str, dict[str, tuple[str, ...]]]

#: what the reasons of a decision take as JSON at the most: with all else it is below 50 KiB
KEPT_BYTES = 40_000
#: of each decision but the first for the servers of one create, which are much alike
BRIEF_BYTES = 1_000
#: characters of a reason
_LONGEST = 1_000


class Outcomes:
    """Tells of choices; what is kept is capped by ``[scheduler]`` options and in its size."""

    def __init__(self, conf: cfg.ConfigOpts, filters: Mapping[str, Filter]) -> None:
        self._options = conf.scheduler
        self._filters = filters

    @property
    def told(self) -> int:
        """How many of the best hosts are told of at the most."""
        return int(max(self._options.scores_kept, self._options.alternates + 1))

    def won(
        self,
        request: Requested,
        choice: Choice,
        position: int,
        considered: int,
        *,
        brief: bool = False,
    ) -> Decision:
        """The host at this position of the ranking, with those after it as alternates; ``brief``
        as one of many of which another decision tells more."""
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
            _counts(choice),
            self._kept(choice.refused, BRIEF_BYTES if brief else KEPT_BYTES),
            {
                item.host.name: {**item.scores, "total": round(item.total, 4)}
                for item in choice.ranked[: self._options.scores_kept]
            },
        )

    def nowhere(self, request: Requested, choice: Choice, hosts: Fleet) -> Decision:
        """No host, and why not."""
        if choice.passed:
            suggestion, reason = None, explain.not_offered(choice.passed)
        else:
            suggestion = nearest(hosts, request, self._filters)

            def told(name: str, why: str) -> str:
                [(_, position)] = hosts.positions([name])
                return explain.unnamed(hosts.host(position), why)

            reason = explain.sentence(len(hosts), choice.refused, suggestion, told)
        return Decision(
            request.server_uuid,
            None,
            considered=len(hosts),
            counts=_counts(choice),
            refused=self._kept(choice.refused, KEPT_BYTES),
            reason=reason,
            suggestion=suggestion,
        )

    def again(self, request: Requested, decision: Decision) -> Decision:
        """The same decision for one more server that is alike, brief."""
        told = {
            name: ((host, reason) for reason, hosts in reasons.items() for host in hosts)
            for name, reasons in decision.refused.items()
        }
        fewest_first = sorted(told, key=lambda name: decision.counts[name])
        return dataclasses.replace(
            decision,
            server_uuid=request.server_uuid,
            refused=_grouped(told, fewest_first, self._options.reasons_kept, BRIEF_BYTES),
        )

    def _kept(self, refused: Mapping[str, Refusals], size: int) -> Reasons:
        fewest_first = sorted(refused, key=lambda name: len(refused[name]))
        told = {name: those.told() for name, those in refused.items()}
        return _grouped(told, fewest_first, self._options.reasons_kept, size)


def _grouped(
    told: Mapping[str, Iterator[tuple[str, str]]], order: Sequence[str], room: int, size: int
) -> Reasons:
    """Reasons with their hosts, of so many hosts and in so many bytes at the most; what one
    filter does not need is left to those after it in the order."""
    kept: dict[str, dict[str, tuple[str, ...]]] = {}
    for number, name in enumerate(order):
        share = len(order) - number
        kept[name], hosts, taken = _first(told[name], room // share, size // share)
        room, size = room - hosts, size - taken
    return {name: kept[name] for name in told}


def _first(
    told: Iterator[tuple[str, str]], room: int, size: int
) -> tuple[dict[str, tuple[str, ...]], int, int]:
    """The first reasons with their hosts, how many hosts, and how many bytes as JSON."""
    found: dict[str, list[str]] = {}
    hosts = taken = 0
    for host, told_reason in itertools.islice(told, room):
        reason = told_reason[:_LONGEST]
        more = _bytes(host) + (0 if reason in found else _bytes(reason))
        if taken + more > size:
            break
        found.setdefault(reason, []).append(host)
        hosts, taken = hosts + 1, taken + more
    return {reason: tuple(those) for reason, those in found.items()}, hosts, taken


def _bytes(text: str) -> int:
    """As JSON, with what is between it and the next."""
    return len(json.dumps(text)) + 4


def _counts(choice: Choice) -> dict[str, int]:
    return {name: len(hosts) for name, hosts in choice.refused.items()}

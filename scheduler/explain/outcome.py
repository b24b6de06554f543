"""Turns a choice into a ``Decision``: the part of it that is stored, and why there was no host."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import orjson
from oslo_config import cfg

from common.messages.scheduling import Alternate, Decision, Refused, RequestSpec
from scheduler.decide.choose import Choice, Filter
from scheduler.decide.refusals import Refusals
from scheduler.explain import words
from scheduler.explain.nearest import nearest
from scheduler.filters.resources import Shortage, shortages
from scheduler.hosts.columns import HostColumns

_Kept = tuple[Refused, ...]
#: filter → hosts with their reasons
Reasons = dict[str, _Kept]
#: the number of hosts with a reason, and the stored ones
_Pending = tuple[int, Callable[[int], Refused]]

#: most bytes of a decision's reasons as JSON: the whole decision is below 50 KiB
KEPT_BYTES = 40_000
#: the same for each decision but the first for the servers of one create, which are alike
BRIEF_BYTES = 1_000
_BRIEF_HOSTS = 50
#: least bytes of a group, while there are some left
_ENOUGH = 200
#: with fewer bytes left no further group is stored
_SOME = 50


class Outcomes:
    """Makes decisions; ``[scheduler]`` options and a size limit cap what is stored."""

    def __init__(self, conf: cfg.ConfigOpts, filters: Mapping[str, Filter]) -> None:
        self._options = conf.scheduler
        self._filters = filters

    @property
    def ranked(self) -> int:
        """The largest number of ranked hosts in a decision."""
        return int(max(self._options.scores_kept, self._options.alternates + 1))

    def won(
        self,
        request: RequestSpec,
        choice: Choice,
        position: int,
        considered: int,
        *,
        brief: bool = False,
    ) -> Decision:
        """Return a decision for the host at this position, with those after it as alternates.

        ``brief``: another decision of the same create has the details.
        """
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
            self._kept(choice.refused, brief=brief),
            {
                item.host.name: {**item.scores, "total": round(item.total, 4)}
                for item in choice.ranked[: self._options.scores_kept]
            },
        )

    def nowhere(self, request: RequestSpec, choice: Choice, hosts: HostColumns) -> Decision:
        """Return a decision without a host, and why."""
        if choice.passed:
            suggestion, reason = None, words.not_offered(choice.passed)
        else:
            suggestion = nearest(hosts, request, self._filters)

            short = _shortages(hosts, request, choice)
            reason = words.sentence(len(hosts), choice.refused, suggestion, short)
        return Decision(
            request.server_uuid,
            None,
            considered=len(hosts),
            counts=_counts(choice),
            refused=self._kept(choice.refused),
            reason=reason,
            suggestion=suggestion,
        )

    def again(self, request: RequestSpec, decision: Decision) -> Decision:
        """Return the same decision for one more server that is alike; brief, if both are of one
        create."""
        if request.by_itself:
            return dataclasses.replace(decision, server_uuid=request.server_uuid)
        refusals = {
            name: [(len(one.hosts), one.first) for one in groups]
            for name, groups in decision.refused.items()
        }
        refused = self._grouped(refusals, decision.counts, BRIEF_BYTES)
        return dataclasses.replace(decision, server_uuid=request.server_uuid, refused=refused)

    def _kept(self, refused: Mapping[str, Refusals], *, brief: bool = False) -> Reasons:
        most = _BRIEF_HOSTS if brief else self._options.reasons_kept
        counts = {name: len(those) for name, those in refused.items()}
        refusals = {name: list(_pending(those, most, brief)) for name, those in refused.items()}
        return self._grouped(refusals, counts, BRIEF_BYTES if brief else KEPT_BYTES)

    def _grouped(
        self, refusals: Mapping[str, Sequence[_Pending]], counts: Mapping[str, int], size: int
    ) -> Reasons:
        """Return reasons with their hosts, in a limited number of bytes; what a filter with few
        hosts doesn't use is left to the others."""
        kept: Reasons = {}
        room = self._options.reasons_kept
        for number, name in enumerate(sorted(refusals, key=lambda name: counts[name])):
            share = len(refusals) - number
            kept[name], hosts, taken = _first(refusals[name], room // share, size // share)
            room, size = room - hosts, size - taken
        return {name: kept[name] for name in refusals}


def _shortages(hosts: HostColumns, request: RequestSpec, choice: Choice) -> list[Shortage]:
    """Return the resources that no refused host has enough of."""
    refused = choice.refused.get(words.RESOURCES)
    return [] if refused is None else shortages(hosts, request, refused.positions)


def _pending(refused: Refusals, most: int, brief: bool) -> Iterator[_Pending]:
    for group in refused.groups(most, first=brief):
        yield len(group.positions), functools.partial(refused.of, group)


def _first(groups: Sequence[_Pending], room: int, size: int) -> tuple[_Kept, int, int]:
    """Return the first hosts of each group, their number, and their bytes as JSON; what small
    groups don't use is left to the larger ones."""
    found: dict[tuple[str, ...], Refused] = {}
    hosts = taken = 0
    for number, (count, render) in enumerate(sorted(groups, key=lambda one: one[0])):
        left = len(groups) - number
        most = min(count, max((room - hosts) // left, 1))
        if hosts >= room or size - taken < _SOME:
            break
        one, length = _fitting(render(most), max((size - taken) // left, _ENOUGH), size - taken)
        if one is None:
            continue
        found[one.text] = _both(found[one.text], one) if one.text in found else one
        hosts, taken = hosts + len(one.hosts), taken + length
    return tuple(found.values()), hosts, taken


def _fitting(one: Refused, share: int, size: int) -> tuple[Refused | None, int]:
    """Return the part of a group that fits its share, and its bytes as JSON; of a group that is
    too large, one host, if that fits."""
    length = _bytes(one)
    while length > share and len(one.hosts) > 1:
        one = one.first(min(len(one.hosts) * share // length, len(one.hosts) - 1) or 1)
        length = _bytes(one)
    return (one if length <= size else None), length


def _both(one: Refused, other: Refused) -> Refused:
    numbers = zip(one.numbers, other.numbers, strict=True)
    return Refused(one.text, one.hosts + other.hosts, tuple(a + b for a, b in numbers))


def _bytes(one: Refused) -> int:
    """Return the bytes of a group as JSON, separators included."""
    return len(orjson.dumps(one)) + 1


def _counts(choice: Choice) -> dict[str, int]:
    return {name: len(hosts) for name, hosts in choice.refused.items()}

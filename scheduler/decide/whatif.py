"""Decisions for many servers on one draft: where they go, and how many more would fit. Pure."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.messages.scheduling import RequestSpec
from common.resources.server_groups import GroupFacts, Policy
from scheduler.decide.choose import Choice, Evaluation, Filters, Weighers, choose
from scheduler.filters.resources import wanted
from scheduler.filters.storage import Pool, free_at_once, pool, reserve
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.usage import Amounts
from scheduler.messages import Capacity, Fit

#: the number per host of servers that request no resources
_NO_LIMIT = 1_000_000


@dataclass(frozen=True)
class Tried:
    """A choice for one of many servers."""

    request: RequestSpec
    """With the places that earlier requests took in its group."""
    choice: Choice
    hosts: HostColumns
    """The hosts it was made from; valid until the next choice."""


def place(
    hosts: HostColumns | Iterable[Host],
    requests: Sequence[RequestSpec],
    filters: Filters,
    weighers: Weighers,
    keep: int | None = None,
) -> Iterator[Tried]:
    """Choose for each request, in order.

    A server takes the room of its host and a place in its group, so that the next one sees what is
    left. For consecutive requests of one kind only the hosts that changed are evaluated again.
    """
    draft = HostColumns.of(hosts).draft({name for request in requests for name in wanted(request)})
    joined: dict[str, Counter[str]] = {}
    evaluation: Evaluation | None = None
    now: RequestSpec | None = None
    for request in requests:
        group = request.group and request.group.with_members(joined.get(request.group.uuid, {}))
        asked = dataclasses.replace(request, group=group)
        if evaluation is None or asked.kind != now:
            evaluation, now = Evaluation(draft, asked, filters, weighers), asked.kind
        choice = evaluation.choice(asked, keep)
        yield Tried(asked, choice, draft)
        if choice.ranked:
            name = choice.ranked[0].host.name
            [(_, position)] = draft.positions([name])
            draft.take(position, wanted(request))
            for changed in {position, *reserve(draft, position, request)}:
                evaluation.changed(changed)
            if group is not None:
                joined.setdefault(group.uuid, Counter())[name] += 1


def capacity(
    hosts: HostColumns | Iterable[Host], request: RequestSpec, filters: Filters
) -> Capacity:
    """Return how many servers like the request each host would take, and what limits it.

    The total is limited by the room of shared storages, and by the one host of an affinity
    group.
    """
    columns = HostColumns.of(hosts)
    refused = {
        name: reason
        for reasons in choose(columns, request, filters, {}, keep=0).refused.values()
        for name, reason in reasons.pairs()
    }
    counts = {name: columns.free(name) // amount for name, amount in wanted(request).items()}
    stored = free_at_once(columns)
    if request.disk_gib:
        counts[_STORAGE] = np.where(stored < 0, _NO_LIMIT, stored // request.disk_gib)
    if request.group is not None and request.group.policy == Policy.ANTI_AFFINITY:
        counts[_GROUP] = _places(columns, request.group)
    fits = [
        Fit(host.name, host.zone, 0, refused[host.name])
        if host.name in refused
        else Fit(host.name, host.zone, *_scarcest(position, counts, host))
        for position, host in enumerate(columns.states())
    ]
    total = _total(columns, request, [fit.count for fit in fits], counts.get(_STORAGE))
    fits.sort(key=lambda fit: (-fit.count, fit.host))
    return Capacity(tuple(fits), total)


def _places(columns: HostColumns, group: GroupFacts) -> Amounts:
    """Return how many more servers of an anti-affinity group each host may have."""
    left = np.full(len(columns), group.max_per_host, np.int64)
    for name, position in columns.positions(group.members):
        left[position] -= group.members[name]
    return np.maximum(left, 0)


def _total(
    columns: HostColumns, request: RequestSpec, counts: list[int], stored: Amounts | None
) -> int:
    if request.group is not None and request.group.policy == Policy.AFFINITY:
        return max(counts, default=0)
    sums: Counter[Pool] = Counter()
    rooms: dict[Pool, int] = {}
    for position, host in enumerate(columns.states()):
        where = pool(host)
        sums[where] += counts[position]
        if stored is not None and counts[position]:
            rooms[where] = max(rooms.get(where, 0), int(stored[position]))
    return sum(min(count, rooms.get(where, count)) for where, count in sums.items())


def _scarcest(position: int, counts: dict[str, Amounts], host: Host) -> tuple[int, str]:
    """Return how many fit a host, and the resource that limits it."""
    count, _, name = min(
        ((int(column[position]), name in _WORDS, name) for name, column in counts.items()),
        default=(_NO_LIMIT, False, ""),
    )
    return count, _WORDS[name](host) if name in _WORDS else name


#: what limits besides resource classes
_STORAGE, _GROUP = "storage", "group"
_WORDS: Mapping[str, Callable[[Host], str]] = {
    _STORAGE: lambda host: f"room on storage {host.facts.vm_storage}",
    _GROUP: lambda host: "places in its anti-affinity group",
}

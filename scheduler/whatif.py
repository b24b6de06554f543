"""Decisions on a snapshot that changes as they are made: for many servers at once, and what if.

Pure, as ``choose``: where do these servers go, and how many more would fit?
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

from common.messages.scheduling import Requested
from scheduler.choose import Choice, Filters, Standing, Weighers
from scheduler.filters.resources import wanted
from scheduler.hosts import Host
from scheduler.messages import Capacity, Fit

#: a host takes no more of servers that ask for nothing
_NO_LIMIT = 1_000_000


def place(
    hosts: Sequence[Host],
    requests: Sequence[Requested],
    filters: Filters,
    weighers: Weighers,
    keep: int | None = None,
) -> Iterator[tuple[Choice, list[Host]]]:
    """For each request, in order: the choice, and the hosts that it was made from.

    A server that found a host takes its room, and its place in its group, so the next one sees
    what is left. Requests of one kind, one after the other, look at the hosts that changed only.
    """
    world = {host.name: host for host in hosts}
    joined: dict[str, Counter[str]] = {}
    standing: Standing | None = None
    kind: Requested | None = None
    for request in requests:
        group = request.group and request.group.with_members(joined.get(request.group.uuid, {}))
        asked = dataclasses.replace(request, group=group)
        if standing is None or _kind(asked) != kind:
            standing, kind = Standing(world.values(), asked, filters, weighers), _kind(asked)
        choice = standing.choice(asked, keep)
        yield choice, standing.hosts
        if choice.ranked:
            host = world[choice.ranked[0].host.name] = _filled(choice.ranked[0].host, request)
            standing.put(host)
            if group is not None:
                joined.setdefault(group.uuid, Counter())[host.name] += 1


def _kind(request: Requested) -> Requested:
    """What requests of one kind have in common."""
    return dataclasses.replace(request, server_uuid="", until=None)


def capacity(hosts: Sequence[Host], request: Requested, filters: Filters) -> Capacity:
    """How many servers like the request each host would take, and what limits it."""
    fits = sorted(
        (_fit(host, request, filters) for host in hosts), key=lambda fit: (-fit.count, fit.host)
    )
    return Capacity(tuple(fits), sum(fit.count for fit in fits))


def _fit(host: Host, request: Requested, filters: Filters) -> Fit:
    zone = host.zone
    for accept in filters.values():
        reason = accept(host, request)
        if reason is not None:
            return Fit(host.name, zone, 0, reason)
    count, limit = min(
        ((host.free(name) // amount, name) for name, amount in wanted(request).items()),
        default=(_NO_LIMIT, ""),
    )
    stored = _on_storage(host, request)
    if stored is not None and stored < count:
        count, limit = stored, f"room on storage {host.facts.vm_storage}"
    return Fit(host.name, zone, count, limit)


def _on_storage(host: Host, request: Requested) -> int | None:
    """How many of its disks fit the storage at once, where all of each must; else None."""
    if host.facts.disk_allocation_ratio > 1.0 or not request.disk_gib:
        return None
    free = [s.available_gib for s in host.facts.storages if s.name == host.facts.vm_storage]
    return free[0] // request.disk_gib if free else None


def _filled(host: Host, request: Requested) -> Host:
    used = dict(host.used)
    for name, amount in wanted(request).items():
        used[name] = used.get(name, 0) + amount
    return dataclasses.replace(host, used=used)

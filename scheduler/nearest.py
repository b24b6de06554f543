"""The smallest change to a request for which a host would have been found.

Nothing is guessed: a change is told only if the filters, asked again with the changed request,
let a host pass. Pure, like ``choose``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from common.messages.scheduling import Change, Requested, Suggestion
from scheduler.choose import Filter
from scheduler.hosts import Host

Alteration = Callable[[Sequence[Host], Requested], Iterator[Requested]]

#: what a change of anything but a size costs, where giving up all of one size costs 1
_OTHER_THAN_SIZE = 1.0
#: resource class → (field of the request, the least that makes sense, field with the image's own)
_SIZES: Mapping[str, tuple[str, int, str | None]] = {
    "VCPU": ("vcpus", 1, None),
    "MEMORY_MB": ("memory_mib", 64, "least_memory_mib"),
    "DISK_GB": ("disk_gib", 1, "least_disk_gib"),
}


def nearest(
    hosts: Sequence[Host], request: Requested, filters: Mapping[str, Filter]
) -> Suggestion | None:
    """The cheapest change that makes ``filters`` accept one of the hosts that refused.

    Tried are less of each size, alone and together with one of ``ALTERATIONS``. None: no such
    change helps.
    """
    best: tuple[float, str, Requested] | None = None
    for altered in _altered(hosts, request):
        others = _OTHER_THAN_SIZE if altered is not request else 0.0
        for host in hosts:
            smaller = _fitted(host, altered)
            if smaller is None or smaller == request:
                continue
            cost = others + _given_up(request, smaller)
            if best is not None and (cost, host.name) >= best[:2]:
                continue
            if _accepts(host, smaller, filters):
                best = (cost, host.name, smaller)
    if best is None:
        return None
    _, host_name, changed = best
    count = sum(_accepts(host, changed, filters) for host in hosts)
    return Suggestion(_changes(request, changed), count, host_name)


def changed(request: Requested, suggestion: Suggestion) -> Requested:
    """The request as the suggestion would have it."""
    return dataclasses.replace(
        request, **{change.field: change.works for change in suggestion.changes}
    )


def _accepts(host: Host, request: Requested, filters: Mapping[str, Filter]) -> bool:
    return all(accept(host, request) is None for accept in filters.values())


# --- sizes


def _fitted(host: Host, request: Requested) -> Requested | None:
    """The request with each size cut to what the host has room for; None below the least."""
    sizes: dict[str, Any] = {}
    for name, (field, least, of_image) in _SIZES.items():
        asked = getattr(request, field)
        fits = min(asked, _room(host, name))
        if fits < asked and fits < max(least, getattr(request, of_image) if of_image else 0):
            return None
        sizes[field] = fits
    return dataclasses.replace(request, **sizes)


def _room(host: Host, name: str) -> int:
    """Of disk also: what is free on the storage, where all of it must fit at once."""
    room = host.room(name)
    if name != "DISK_GB" or host.facts.disk_allocation_ratio > 1.0:
        return room
    free = [s.available_gib for s in host.facts.storages if s.name == host.facts.vm_storage]
    return min([room, *free])


def _given_up(request: Requested, smaller: Requested) -> float:
    """The sum over the sizes of the share that is given up."""
    total = 0.0
    for field, _, _ in _SIZES.values():
        asked = getattr(request, field)
        if asked:
            total += (asked - getattr(smaller, field)) / asked
    return total


# --- everything else


def _zones(hosts: Sequence[Host], request: Requested) -> Iterator[Requested]:
    if request.availability_zone is not None:
        for zone in sorted({host.zone for host in hosts}):
            yield dataclasses.replace(request, availability_zone=zone)


def _any_host(hosts: Sequence[Host], request: Requested) -> Iterator[Requested]:
    if request.force_host is not None:
        yield dataclasses.replace(request, force_host=None)


def _networks(hosts: Sequence[Host], request: Requested) -> Iterator[Requested]:
    for left_out in dict.fromkeys(request.networks):
        rest = tuple(bridge for bridge in request.networks if bridge != left_out)
        yield dataclasses.replace(request, networks=rest)


ALTERATIONS: tuple[Alteration, ...] = (_zones, _any_host, _networks)


def _altered(hosts: Sequence[Host], request: Requested) -> Iterator[Requested]:
    yield request
    for alteration in ALTERATIONS:
        yield from alteration(hosts, request)


# --- what changed

_FIELDS = (
    "availability_zone",
    "force_host",
    "networks",
    *(field for field, _, _ in _SIZES.values()),
)


def _changes(request: Requested, works: Requested) -> tuple[Change, ...]:
    return tuple(
        Change(name, getattr(request, name), getattr(works, name))
        for name in _FIELDS
        if getattr(request, name) != getattr(works, name)
    )

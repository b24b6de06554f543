"""The smallest change to a request for which there would be a host.

Nothing is guessed: a change is suggested only if a host passes the filters with the changed
request. Pure, like ``choose``.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from common.messages.scheduling import Change, RequestSpec, Suggestion, Way
from scheduler.columnar.forms import ColumnarFilter
from scheduler.decide.choose import Filter, Filters, choose
from scheduler.explain import regroup
from scheduler.filters.storage import free_at_once
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Floats
from scheduler.hosts.usage import Amounts, Rows

Alteration = Callable[[HostColumns, RequestSpec], Iterator[RequestSpec]]

#: with plain filters, each alteration is tried on so many hosts
LOOKED_AT = 100
#: cost of changing anything but a size, where giving up all of one size costs 1
_OTHER_THAN_SIZE = 1.0
#: resource class → (field of the request, its least useful value, field with the image's own)
_SIZES: Mapping[str, tuple[str, int, str | None]] = {
    "VCPU": ("vcpus", 1, None),
    "MEMORY_MB": ("memory_mib", 64, "least_memory_mib"),
    "DISK_GB": ("disk_gib", 1, "least_disk_gib"),
}


def nearest(
    hosts: HostColumns | Iterable[Host], request: RequestSpec, filters: Filters
) -> Suggestion | None:
    """Return the cheapest change that makes ``filters`` accept one of the hosts that refused.

    Tries less of each size, alone and together with one of ``ALTERATIONS``. None: no such change
    helps, or none is needed. Plain filters are called host by host, so with them each alteration
    is tried on at most ``LOOKED_AT`` hosts, those that give up least: a helpful change may be
    missed, but none is suggested that doesn't help.
    """
    columns = HostColumns.of(hosts)
    rooms = {name: _room(columns, name) for name in _SIZES}
    plain_first = sorted(filters.values(), key=lambda one: isinstance(one, ColumnarFilter))
    all_columnar = all(isinstance(one, ColumnarFilter) for one in plain_first)
    best: tuple[float, str, RequestSpec] | None = None
    for altered in _altered(columns, request):
        others = _OTHER_THAN_SIZE if altered is not request else 0.0
        promising = _promising(columns, rooms, altered, filters)
        for cost, position in itertools.islice(promising, None if all_columnar else LOOKED_AT):
            if best is not None and others + cost >= best[0]:
                break
            smaller = _fitted(rooms, position, altered)
            if _accepts(columns.host(position), smaller, plain_first):
                if smaller == request:
                    return None
                best = (others + cost, columns.name(position), smaller)
                break
    if best is None:
        return None
    _, host_name, works = best
    count = choose(columns, works, filters, {}, keep=0).passed
    others_too = tuple(_other_ways(columns, request, works, filters))
    return Suggestion(_changes(request, works), count, host_name, others_too)


def changed(request: RequestSpec, way: Way) -> RequestSpec:
    """Return the request with the suggested changes."""
    values = {change.field: change.works for change in way.changes}
    values["group"] = regroup.changed(request.group, values)
    return dataclasses.replace(request, **values)


def _other_ways(
    columns: HostColumns, request: RequestSpec, works: RequestSpec, filters: Filters
) -> Iterator[Way]:
    """Return other changes of the server group that would also do."""
    altered = {change.field for change in regroup.changes(request.group, works.group)}
    if not altered or request.group is None:
        return
    for name, ways in regroup.WAYS.items():
        for group in ways(request.group) if name not in altered else ():
            other = dataclasses.replace(works, group=group)
            choice = choose(columns, other, filters, {}, keep=1)
            if choice.ranked:
                found = choice.ranked[0].host.name
                yield Way(_changes(request, other), choice.passed, found)
                break


def _accepts(host: Host, request: RequestSpec, filters: Iterable[Filter]) -> bool:
    return all(accept(host, request) is None for accept in filters)


# --- sizes


def _promising(
    columns: HostColumns, rooms: Mapping[str, Amounts], altered: RequestSpec, filters: Filters
) -> Iterator[tuple[float, int]]:
    """Return what would be given up on each promising host, least first: (cost, position).

    Left out are hosts without room for the least useful sizes, or that refuse even those.
    """
    cost = np.zeros(len(columns))
    fits = np.ones(len(columns), np.bool_)
    for name, (field, _, _) in _SIZES.items():
        asked, room = getattr(altered, field), rooms[name]
        fits &= room >= min(_least(altered, name), asked)
        if asked:
            cost += np.maximum(asked - room, 0) / asked
    if not fits.any():
        return
    # No host is tried with less than this.
    smallest = dataclasses.replace(
        altered,
        **{
            field: min(int(rooms[name][fits].min()), getattr(altered, field))
            for name, (field, _, _) in _SIZES.items()
        },
    )
    for accept in filters.values():
        if isinstance(accept, ColumnarFilter):
            refused = accept.refused(columns, smallest)
            if refused is not None:
                fits &= ~refused
    yield from _cheapest_first(columns, np.flatnonzero(fits), cost[fits])


def _cheapest_first(
    columns: HostColumns, positions: Rows, costs: Floats
) -> Iterator[tuple[float, int]]:
    """Yield positions by cost, then by name. Sorted as far as they are read: mostly the first
    does."""
    order = np.argsort(costs, kind="stable")
    positions, costs = positions[order], costs[order]
    begin = 0
    while begin < len(positions):
        cost = float(costs[begin])
        end = int(np.searchsorted(costs, cost, side="right"))
        alike = positions[begin:end].tolist()
        first = min(alike, key=columns.name)
        yield cost, first
        for position in sorted(alike, key=columns.name)[1:]:
            yield cost, position
        begin = end


def _fitted(rooms: Mapping[str, Amounts], position: int, request: RequestSpec) -> RequestSpec:
    """Return the request with each size cut to a promising host's room."""
    return dataclasses.replace(
        request,
        **{
            field: min(getattr(request, field), int(rooms[name][position]))
            for name, (field, _, _) in _SIZES.items()
        },
    )


def _least(request: RequestSpec, name: str) -> int:
    _, least, of_image = _SIZES[name]
    return max(least, getattr(request, of_image) if of_image else 0)


def _room(columns: HostColumns, name: str) -> Amounts:
    """Return the room for a class; for disk at most what is free on a thick storage."""
    room = columns.room(name)
    if name != "DISK_GB":
        return room
    free = free_at_once(columns)
    return np.where(free < 0, room, np.minimum(room, free))


# --- everything else


def _zone(host: Host) -> str:
    return host.zone


def _zones(columns: HostColumns, request: RequestSpec) -> Iterator[RequestSpec]:
    if request.availability_zone is not None:
        for zone in sorted(columns.values(_zone)):
            yield dataclasses.replace(request, availability_zone=zone)


def _any_host(columns: HostColumns, request: RequestSpec) -> Iterator[RequestSpec]:
    if request.force_host is not None:
        yield dataclasses.replace(request, force_host=None)


def _networks(columns: HostColumns, request: RequestSpec) -> Iterator[RequestSpec]:
    for left_out in dict.fromkeys(request.networks):
        rest = tuple(bridge for bridge in request.networks if bridge != left_out)
        vlans = tuple(one for one in request.vlans if one[0] != left_out)
        yield dataclasses.replace(request, networks=rest, vlans=vlans)


def _groups(columns: HostColumns, request: RequestSpec) -> Iterator[RequestSpec]:
    asked = request.group
    if asked is not None:
        for ways in regroup.WAYS.values():
            for group in ways(asked):
                yield dataclasses.replace(request, group=group)


#: metadata with this beginning is the user's or operator's own and refuses no host
_HARMLESS = ("group", "hw_qemu_", "os_distro", "os_version")


def _without_one(field: str) -> Alteration:
    """Return an alteration that leaves out one of the entries of a mapping."""

    def altered(columns: HostColumns, request: RequestSpec) -> Iterator[RequestSpec]:
        asked: Mapping[str, Any] = getattr(request, field)
        for left_out in sorted(asked)[:_TRIED]:
            if not left_out.startswith(_HARMLESS):
                rest = {name: value for name, value in asked.items() if name != left_out}
                values: dict[str, Any] = {field: rest}
                yield dataclasses.replace(request, **values)

    return altered


_MAPPINGS = ("hints", "extra_specs", "image_properties")
#: of more entries no more are tried to be left out
_TRIED = 20

ALTERATIONS: tuple[Alteration, ...] = (
    _zones,
    _any_host,
    _networks,
    _groups,
    *map(_without_one, _MAPPINGS),
)


def _altered(columns: HostColumns, request: RequestSpec) -> Iterator[RequestSpec]:
    yield request
    for alteration in ALTERATIONS:
        yield from alteration(columns, request)


# --- what changed

_FIELDS = (
    "availability_zone",
    "force_host",
    "networks",
    "vlans",
    *_MAPPINGS,
    *(field for field, _, _ in _SIZES.values()),
)


def _changes(request: RequestSpec, works: RequestSpec) -> tuple[Change, ...]:
    found = regroup.changes(request.group, works.group)
    found += [
        Change(name, getattr(request, name), getattr(works, name))
        for name in _FIELDS
        if getattr(request, name) != getattr(works, name)
    ]
    return tuple(found)

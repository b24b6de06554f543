"""Filter by allocated resources. Placement decides; this only gives the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from common.guest.requirements import Requirements, requirements
from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import refusing
from scheduler.columnar.reasons import Group, constant, split
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host
from scheduler.hosts.usage import Amounts, Rows

_NOTHING = "the flavor asks for nothing: all its resources are 0, so nothing can be claimed"
#: the form of resource class names in placement
_CLASS = re.compile(r"[A-Z0-9_]+", re.ASCII)
_UNITS = {"VCPU": "VCPU", "MEMORY_MB": "MiB RAM", "DISK_GB": "GiB disk"}


@dataclass(frozen=True)
class Shortage:
    """A resource that no refused host has enough of."""

    unit: str
    asked: int
    most: int
    """The largest amount on a refused host."""
    host: str
    """The host with this amount."""
    whole: bool
    """Whether it is the maximum for one server there, whatever is free."""

    def __str__(self) -> str:
        unit = self.unit.split()[0]
        most = f"{self.most} {unit} {'for one server' if self.whole else 'free'} at most"
        return f"{self.asked} {self.unit} asked, {most} ({self.host})"


def _too_large(unit: str, amount: int) -> list[str]:
    """Return the parts of a sentence around the most that one server may have."""
    return ["one server may have ", f" {unit} at most, {amount} asked"]


def _promised(unit: str, amount: int) -> list[str]:
    """Return the parts of a sentence around what is free, and the total."""
    return ["", " of ", f" {unit} free, {amount} asked"]


_SHORT = {1: _too_large, 2: _promised}


def needs(request: RequestSpec) -> Requirements:
    """Return all that a request needs of placement."""
    return requirements(
        request.vcpus,
        request.memory_mib,
        request.disk_gib,
        request.extra_specs,
        request.image_properties,
    )


def wanted(request: RequestSpec) -> Mapping[str, int]:
    """Return the amount of each resource class of a request, without zeros (as in Nova)."""
    return {} if request.claimed else needs(request).resources


def _senseless(request: RequestSpec, amounts: Mapping[str, int]) -> str | None:
    """Return why no host at all could have this."""
    if not amounts:
        return None if request.claimed else _NOTHING
    wrong = next((name for name in amounts if not _CLASS.fullmatch(name)), None)
    if wrong is None:
        return None
    return f"the flavor's extra spec resources:{wrong} names no resource class"


def _full(columns: HostColumns, request: RequestSpec) -> Mask:
    amounts = wanted(request)
    refused = np.full(len(columns), _senseless(request, amounts) is not None)
    for name, amount in amounts.items():
        refused |= columns.room(name) < amount
    return refused


def _why_full(
    columns: HostColumns, request: RequestSpec, positions: Rows, most: int | None
) -> Iterator[Group]:
    """Return reasons by group: which classes are short, and how; the numbers as columns."""
    amounts = wanted(request)
    senseless = _senseless(request, amounts)
    if senseless is not None:
        yield Group(positions, constant(senseless))
        return
    states: dict[str, Amounts] = {}
    codes = np.zeros(len(positions), np.int64)
    for name, amount in amounts.items():
        short = columns.room(name)[positions] < amount
        states[name] = short.astype(np.int64) + (short & (columns.free(name)[positions] < amount))
        codes = codes * 3 + states[name]
    for among in split(codes, most):
        first = int(among[0])
        alike = {name: int(state[first]) for name, state in states.items() if state[first]}
        yield _group(columns, positions[among], amounts, alike)


def _group(
    columns: HostColumns, positions: Rows, amounts: Mapping[str, int], states: Mapping[str, int]
) -> Group:
    """Return the code of hosts short of the same classes: 1, too large for any server there, or 2,
    too little is free."""
    pieces: list[str] = []
    numbers: list[Amounts] = []
    for name, state in states.items():
        first, *others = _SHORT[state](_UNITS.get(name, name), amounts[name])
        pieces = [*pieces[:-1], f"{pieces[-1]}; {first}" if pieces else first, *others]
        shown = (
            [columns.largest(name)]
            if state == 1
            else [np.maximum(columns.free(name), 0), columns.capacity(name)]
        )
        numbers += [column[positions] for column in shown]
    return Group(positions, lambda: tuple(pieces), tuple(numbers))


def shortages(columns: HostColumns, request: RequestSpec, positions: Rows) -> list[Shortage]:
    """Return the resources that no given host has enough of, with the largest amount of a host."""
    found: list[Shortage] = []
    amounts = wanted(request)
    if _senseless(request, amounts) is not None:
        return found
    for name, amount in amounts.items():
        room = columns.room(name)[positions]
        if not len(room) or int(room.max()) >= amount:
            continue
        most = int(room.max())
        alike = positions[room == most].tolist()
        best = min(alike, key=columns.name)
        whole = bool(int(columns.free(name)[best]) >= amount)
        unit = _UNITS.get(name, name)
        found.append(Shortage(unit, amount, most, columns.name(best), whole))
    return found


@host_filter(after="aggregate_image_properties_isolation", words="no room")
@refusing(_full, by_group=_why_full)
def resources(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts without room; the reason has each short resource with its numbers."""
    amounts = wanted(request)
    senseless = _senseless(request, amounts)
    if senseless is not None:
        return senseless
    short = [
        _reason(host, name, amount) for name, amount in amounts.items() if host.room(name) < amount
    ]
    return "; ".join(short) or None


def _reason(host: Host, name: str, amount: int) -> str:
    unit = _UNITS.get(name, name)
    if host.free(name) >= amount:
        before, after = _too_large(unit, amount)
        return f"{before}{host.largest(name)}{after}"
    before, between, after = _promised(unit, amount)
    return f"{before}{max(host.free(name), 0)}{between}{host.capacity.get(name, 0)}{after}"

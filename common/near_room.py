"""Which host lacks the least room for a server, and whose end would make room. Pure.

Only room, availability zones and traits count; other filters are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from common import more_hosts
from common.more_hosts import Host, Wanted, holds


@dataclass(frozen=True)
class HostRoom:
    """A host that takes servers."""

    host: str
    zone: str
    capacity: Mapping[str, int]
    """Resource class → what may be allocated when it is empty."""
    free: Mapping[str, int]
    """Resource class → what is free now, for the classes that the records of servers count."""
    traits: frozenset[str]
    largest: Mapping[str, int] = field(default_factory=dict)
    """See ``common.more_hosts.Empty``."""


class Near(NamedTuple):
    """The nearest host."""

    host: str
    lacks: Mapping[str, int]
    """Resource class → amount."""


class Ending(NamedTuple):
    """A server that might end, and the room that this would free."""

    uuid: str
    host: str
    has: Mapping[str, int]
    """Resource class → amount."""


def nearest(asked: Wanted, hosts: Iterable[HostRoom]) -> Near | None:
    """Return the host that lacks the least part of what a server asks for.

    Hosts that lack nothing are left out: they refuse it for another reason, or are about to take
    it. None: no host is left that could take it when empty.
    """
    found = [
        Near(one.host, lacks)
        for one in hosts
        if asked.may_be_on(one) and (lacks := _lacks(asked.needs, one.free))
    ]
    return min(found, key=lambda one: (_part(asked.needs, one.lacks), one.host), default=None)


def would_make_room(
    asked: Wanted, hosts: Iterable[HostRoom], endings: Iterable[Ending]
) -> Iterator[str]:
    """Yield the servers whose end would make enough room, with what their hosts have free now."""
    there = {one.host: one for one in hosts if asked.may_be_on(one)}
    for one in endings:
        room = there.get(one.host)
        if room is not None and holds(
            {name: amount + one.has.get(name, 0) for name, amount in room.free.items()},
            asked.needs,
        ):
            yield one.uuid


def one_more(asked: Wanted, hosts: Iterable[HostRoom]) -> str | None:
    """Return a host of the most frequent kind that could take it when empty; None: none could."""
    able = (one for one in hosts if asked.may_be_on(one))
    found = more_hosts.kinds(
        Host(one.host, one.zone, one.capacity, one.traits, one.largest) for one in able
    )
    return found[0].like if found else None


def _lacks(needs: Mapping[str, int], free: Mapping[str, int]) -> dict[str, int]:
    return {
        name: amount - free[name]
        for name, amount in needs.items()
        if name in free and free[name] < amount
    }


def _part(needs: Mapping[str, int], lacks: Mapping[str, int]) -> float:
    return max(amount / needs[name] for name, amount in lacks.items())

"""Which of the builds that wait for room are tried again. Pure.

Free room is handed out in order of arrival, a project's first request before another project's
second. A small request may overtake an earlier large one, but not without end: once the large one
has waited for a quarter of its time, or ``overtake_most`` others have overtaken it, a host is kept
for it, which no other build gets (as in EASY backfill).
"""

from __future__ import annotations

import collections
import datetime
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from conductor.store.servers.waiting import Amounts, Waiting

#: the most decisions at a time, where all builds of a gang count as one, and the most hosts that
#: are kept
MOST = 16
_NEVER = datetime.datetime.min.replace(tzinfo=datetime.UTC)
#: a host is kept for a request once this part of its time has passed: a quarter
_PATIENCE = 4
#: a build that was tried so many seconds ago may be tried again, whatever is known of room
AGAIN_SECONDS = 60


@dataclass
class Choice:
    """What a look changes for the builds that wait, which are named by their operations' IDs."""

    woken: list[int] = field(default_factory=list)
    overtaken: dict[int, int] = field(default_factory=dict)
    """Operation → how many more servers have overtaken it since it was last counted."""
    kept: dict[int, str | None] = field(default_factory=dict)
    """Operation → the host that is kept for it from now on; None: none any more."""

    def __bool__(self) -> bool:
        """Return whether anything is done."""
        return bool(self.woken or self.overtaken or self.kept)


def choose(
    waiting: Sequence[Waiting],
    room: Mapping[str, Amounts],
    now: datetime.datetime,
    overtake_most: int,
    *,
    again: bool,
    taken: Mapping[str, int] = MappingProxyType({}),
    served: Mapping[str, datetime.datetime] = MappingProxyType({}),
) -> Choice:
    """Return which builds are tried again. ``room``: what each host has free.

    ``taken``: host → the number of servers it got since the last choice without a wait.
    ``served``: project → when its last build that found a host was woken.
    With ``again`` some builds are tried even if no room is known, as a filter may judge
    differently by now; but not while schedulers decide on others.
    """
    choice = Choice()
    free = _Free(room)
    asleep = []
    for one in waiting:
        if one.is_deciding(now):
            free.take(one, ())
        else:
            asleep.append(one)
    for one in asleep:
        if times := sum(n for host, n in taken.items() if one.could_have(host)):
            choice.overtaken[one.operation_id] = times
    left = MOST - len({one.together for one in waiting if one.is_deciding(now)})
    held = held_hosts(waiting, now)
    kept = _keep(asleep, free.amounts, held, now, overtake_most)
    arrival = {one.operation_id: place for place, one in enumerate(_by_arrival(asleep))}
    passed: list[Waiting] = []
    for together in in_turn(asleep, served):
        if left <= 0:
            break
        numbers = [one.operation_id for one in together]
        # A build may have the host that is kept for a later one.
        last = max(arrival[number] for number in numbers)
        barred = {host for number, host in kept.items() if arrival[number] < last} - {
            kept[number] for number in numbers if number in kept
        }
        if hosts := free.take_all(together, held | barred):
            for number, host in zip(numbers, hosts, strict=True):
                _swap(kept, number, host)
            choice.woken += numbers
            left -= 1
            for before in passed:
                times = choice.overtaken.get(before.operation_id, 0)
                choice.overtaken[before.operation_id] = times + 1
        else:
            passed += together
    choice.kept = {
        one.operation_id: kept.get(one.operation_id)
        for one in asleep
        if kept.get(one.operation_id) != one.kept
    }
    if again and left == MOST:
        choice.woken = _untried(passed, now, served)
    return choice


def in_turn(
    waiting: Iterable[Waiting], served: Mapping[str, datetime.datetime]
) -> Iterator[list[Waiting]]:
    """Yield requests in the order of their turns, the builds of a gang together.

    Each project's first request comes before any project's second. Among first requests, that of
    the project served longest ago comes first: so projects share room that becomes free one place
    at a time.
    """
    gangs: dict[str | int, list[Waiting]] = {}
    for one in _by_arrival(waiting):
        gangs.setdefault(one.together, []).append(one)
    ranks: collections.Counter[str] = collections.Counter()
    ordered = []
    for together in gangs.values():
        first = together[0]
        last = served.get(first.project_id, _NEVER)
        turn = (ranks[first.project_id], last, first.since, first.operation_id)
        ordered.append((turn, together))
        ranks[first.project_id] += 1
    for _, together in sorted(ordered, key=lambda one: one[0]):
        yield together


def _by_arrival(waiting: Iterable[Waiting]) -> list[Waiting]:
    return sorted(waiting, key=lambda one: (one.since, one.operation_id))


def last_served(
    found: Sequence[Waiting], still: Sequence[Waiting], over: Mapping[int, bool]
) -> dict[int, Waiting]:
    """Return, for each project that still waits, its build that was the last to find a host.

    Its row is not deleted yet: by the row's ``woken_at`` all conductors know whose turn it is.
    ``over``: operation → whether its build, which waits no more, has a host.
    """
    projects = {one.project_id for one in still}
    placed = [one for one in found if over.get(one.operation_id) and one.woken_at]
    last = {one.project_id: one for one in sorted(placed, key=lambda one: str(one.woken_at))}
    return {one.operation_id: one for one in last.values() if one.project_id in projects}


def is_overdue(one: Waiting, now: datetime.datetime, overtake_most: int, more: int = 0) -> bool:
    """Return whether a build has waited, or was overtaken, so much that a host is kept for it.

    ``more``: how many may have overtaken it that its row does not count yet.
    """
    patience = (one.until - one.since) / _PATIENCE
    return one.overtaken + more >= overtake_most or now - one.since >= patience


def held_hosts(waiting: Iterable[Waiting], now: datetime.datetime) -> frozenset[str]:
    """Return the hosts that are kept for builds on which a scheduler decides now."""
    return frozenset(one.kept for one in waiting if one.kept and one.is_deciding(now))


def lacks_host(overdue: Iterable[Waiting], held: Collection[str]) -> bool:
    """Return whether a host could be kept for a build that has none; in order of arrival.

    Hosts are kept for ``MOST`` builds, and none for a build that no host could take: else every
    look would compare all hosts for it. ``held``: hosts that are kept for builds being decided on.
    """
    kept: set[str] = set()
    for one in overdue:
        if len(kept) == MOST:
            break
        if one.kept is not None:
            kept.add(one.kept)
        elif one.able is None or any(
            host not in kept and host not in held and host not in one.refused for host in one.able
        ):
            return True
    return False


def _keep(
    asleep: Sequence[Waiting],
    free: Mapping[str, Amounts],
    held: Collection[str],
    now: datetime.datetime,
    overtake_most: int,
) -> dict[int, str]:
    """Return the hosts to keep for overdue builds: for each the one nearest to having room.

    ``held``: hosts that are kept for builds being decided on.
    """
    kept: dict[int, str] = {}
    for one in _by_arrival(asleep):
        if not is_overdue(one, now, overtake_most):
            continue
        # A host that refused it had room: it refused for another reason, so it is not kept.
        without = {*held, *kept.values(), *one.refused}
        hosts = set(free if one.able is None else one.able) - without
        near = one.kept if one.kept in hosts else None
        if near is None:
            near = max(hosts, key=functools.partial(_nearness, one, free), default=None)
        if near is not None:
            kept[one.operation_id] = near
        if len(kept) == MOST:
            break
    return kept


def _swap(kept: dict[int, str], number: int, host: str) -> None:
    """Let a build take the host that is kept for another build, and exchange what is kept.

    The other build is then kept the host that was kept for this one, if there was one.
    """
    other = next((one for one, its in kept.items() if its == host), None)
    if other in (None, number):
        return
    own = kept.pop(number, None)
    del kept[other]
    kept[number] = host
    if own is not None:
        kept[other] = own


def _nearness(one: Waiting, free: Mapping[str, Amounts], host: str) -> tuple[float, str]:
    """Return how near a host is to having room, as a key to sort by.

    That is the free part of the resource class it lacks most; equal hosts sort by name.
    """
    there = free.get(host, {})
    parts = [min(1.0, there.get(name, 0) / amount) for name, amount in one.needs.items()]
    return (min(parts, default=1.0), host)


class _Free:
    """What each host has free, while it is handed out."""

    def __init__(self, room: Mapping[str, Amounts]) -> None:
        self.amounts = {host: dict(amounts) for host, amounts in room.items()}
        self._roomy: dict[tuple[tuple[str, int], ...], Sequence[str]] = {}
        """Amounts → hosts that had so much at first. Most builds need one of a few amounts."""

    def take_all(self, together: Sequence[Waiting], without: Collection[str]) -> list[str]:
        """Take room for builds that are placed together; return a host for each.

        If one of them finds no host, no room is taken, and the list is empty.
        """
        taken: list[tuple[str, Waiting]] = []
        for one in together:
            host = self.take(one, without)
            if host is None:
                for each, other in taken:
                    self._add(each, other, 1)
                return []
            taken.append((host, one))
        return [host for host, _ in taken]

    def take(self, one: Waiting, without: Collection[str]) -> str | None:
        """Take the room of a build on the first host that may take it; return that host."""
        for host in self._with_room(one.needs):
            if host not in without and one.fits(host, self.amounts[host]):
                self._add(host, one, -1)
                return host
        return None

    def _with_room(self, needs: Amounts) -> Sequence[str]:
        key = tuple(sorted(needs.items()))
        if key not in self._roomy:
            self._roomy[key] = [
                host
                for host, amounts in self.amounts.items()
                if all(amounts.get(name, 0) >= amount for name, amount in key)
            ]
        return self._roomy[key]

    def _add(self, host: str, one: Waiting, sign: int) -> None:
        amounts = self.amounts[host]
        for name, amount in one.needs.items():
            amounts[name] += sign * amount


def _untried(
    passed: Sequence[Waiting], now: datetime.datetime, served: Mapping[str, datetime.datetime]
) -> list[int]:
    """Return builds that no scheduler has tried for a minute, the longest untried first."""
    oldest = sorted(in_turn(passed, served), key=_tried_at)[:MOST]
    before = now - datetime.timedelta(seconds=AGAIN_SECONDS)
    return [one.operation_id for some in oldest if _tried_at(some) <= before for one in some]


def _tried_at(together: Sequence[Waiting]) -> datetime.datetime:
    return max(one.tried_at for one in together)

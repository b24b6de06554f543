"""Which hosts could take a build that waits if they were empty: by zone, traits and size."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from common.errors import Invalid
from common.more_hosts import Host, Wanted, wanted_of
from conductor.cloud import Cloud
from conductor.store.servers import waiting
from conductor.store.servers.waiting import Place, Waiting

#: seconds after which hosts are read again, whatever is known of them
_AGAIN_SECONDS = 60


class AbleHosts:
    """The hosts of the cloud, and what each waiting build asks of its host, as last read."""

    def __init__(self, cloud: Cloud, timer: Callable[[], float] = time.monotonic) -> None:
        self._cloud, self._timer = cloud, timer
        self._read_again_at = float("-inf")
        self._places: Sequence[Place] = ()
        self._known: frozenset[str] = frozenset()
        """UUIDs known at the last reading: of all hosts, and of all providers that had room."""
        self._with: dict[str, frozenset[str]] = {}
        """Trait → the providers that have it."""
        self._asked: dict[int, Wanted] = {}
        """Operation → what it asks of its host."""
        self._able_of: dict[int, frozenset[str]] = {}
        """Operation → the hosts that could take it."""

    def forget(self) -> None:
        """Have all hosts read again."""
        self._read_again_at = float("-inf")
        self._able_of = {}

    def known(self, found: Iterable[Waiting]) -> list[Waiting]:
        """Return the builds with the ``able`` that ``of`` last found. No query."""
        return [
            dataclasses.replace(one, able=self._able_of.get(one.operation_id)) for one in found
        ]

    def of(
        self,
        found: Sequence[Waiting],
        room: Collection[str],
        down: Collection[str],
        overtaken: Mapping[int, int] = MappingProxyType({}),
    ) -> list[Waiting]:
        """Return the builds with ``able`` and ``overtaken`` brought up to date.

        ``room``: UUIDs of hosts with free room; ``down``: names of hosts without an agent;
        ``overtaken``: operation → how many overtook it that its row does not count yet. Raises
        Unavailable.
        """
        self._read(found, room)
        usable = [one for one in self._places if not (one.disabled or one.host in down)]
        alike: dict[object, frozenset[str]] = {}
        made = []
        for one in found:
            asked = self._asked.get(one.operation_id, Wanted(one.needs, one.zone))
            key = (*asked[1:], tuple(sorted(one.needs.items())))
            if key not in alike:
                alike[key] = frozenset(self._able(asked, usable))
            passed = one.overtaken + overtaken.get(one.operation_id, 0)
            made.append(dataclasses.replace(one, able=alike[key], overtaken=passed))
        self._able_of = {one.operation_id: one.able for one in made if one.able is not None}
        return made

    def _read(self, found: Sequence[Waiting], room: Collection[str]) -> None:
        by_id = {one.operation_id: one for one in found}
        self._asked = {number: one for number, one in self._asked.items() if number in by_id}
        new = [number for number in by_id if number not in self._asked]
        again = self._timer() >= self._read_again_at or not self._known.issuperset(room)
        if not (new or again):
            return
        with self._cloud.store.read() as connection:
            for number, flavor, properties in waiting.flavors_of(connection, new):
                one = by_id[number]
                self._asked[number] = wanted_of(one.needs, one.zone, flavor, properties)
            if again:
                self._places = waiting.places(connection)
        if again:
            self._with = {}
            self._known = frozenset(room).union(one.uuid for one in self._places)
            self._read_again_at = self._timer() + _AGAIN_SECONDS

    def _able(self, asked: Wanted, places: Iterable[Place]) -> Iterator[str]:
        traits = asked.required | asked.forbidden
        for one in places:
            # A host's facts do not name all classes: placement may have some more of it.
            capacity = {**asked.needs, **one.capacity}
            has = frozenset(name for name in traits if one.uuid in self._providers(name))
            if asked.may_be_on(Host(one.host, one.zone, capacity, has, one.largest)):
                yield one.uuid

    def _providers(self, trait: str) -> frozenset[str]:
        """Return the providers that have a trait. A request for each trait that is asked for."""
        if trait not in self._with:
            try:
                found = self._cloud.placement.providers(trait=trait)
            except Invalid:
                # No host ever had it.
                found = []
            self._with[trait] = frozenset(one.uuid for one in found)
        return self._with[trait]

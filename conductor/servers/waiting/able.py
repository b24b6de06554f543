"""Which hosts could take a build that waits if they were empty: by zone, traits and size."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from common.errors import Invalid
from common.guest.requirements import requirements
from conductor.cloud import Cloud
from conductor.store.servers import waiting
from conductor.store.servers.waiting import Place, Waiting

#: seconds after which hosts are read again, whatever is known of them
_AGAIN_SECONDS = 60


@dataclass(frozen=True)
class _Traits:
    """Traits that a host must and must not have."""

    required: frozenset[str]
    forbidden: frozenset[str]


class AbleHosts:
    """Hosts and what builds ask of them, as they were read last."""

    def __init__(self, cloud: Cloud, timer: Callable[[], float] = time.monotonic) -> None:
        self._cloud, self._timer = cloud, timer
        self._read_again_at = float("-inf")
        self._places: Sequence[Place] = ()
        self._known: frozenset[str] = frozenset()
        """Providers that were looked for among the hosts: some may be no hosts of ours."""
        self._with: dict[str, frozenset[str]] = {}
        """Trait → the providers that have it."""
        self._traits: dict[int, _Traits] = {}

    def forget(self) -> None:
        """Have all hosts read again."""
        self._read_again_at = float("-inf")

    def of(
        self,
        found: Sequence[Waiting],
        room: Collection[str],
        down: Collection[str],
        overtaken: Mapping[int, int] = MappingProxyType({}),
    ) -> list[Waiting]:
        """Return builds with the hosts that could take them, and by how many they were overtaken.

        ``room``: hosts that have some, by UUID; ``down``: hosts without an agent, by name;
        ``overtaken``: by how many more than they say. Raises Unavailable.
        """
        self._read(found, room)
        usable = [one for one in self._places if not (one.disabled or one.host in down)]
        alike: dict[object, frozenset[str]] = {}
        made = []
        for one in found:
            traits = self._traits.get(one.operation_id)
            key = (one.zone, traits, tuple(sorted(one.needs.items())))
            if key not in alike:
                alike[key] = frozenset(self._able(one, traits, usable))
            passed = one.overtaken + overtaken.get(one.operation_id, 0)
            made.append(dataclasses.replace(one, able=alike[key], overtaken=passed))
        return made

    def _read(self, found: Sequence[Waiting], room: Collection[str]) -> None:
        self._traits = {
            one.operation_id: self._traits[one.operation_id]
            for one in found
            if one.operation_id in self._traits
        }
        new = [one.operation_id for one in found if one.operation_id not in self._traits]
        again = self._timer() >= self._read_again_at or not self._known.issuperset(room)
        if not (new or again):
            return
        with self._cloud.store.read() as connection:
            self._traits |= {
                number: _traits(flavor, properties)
                for number, flavor, properties in waiting.flavors_of(connection, new)
            }
            if again:
                self._places = waiting.places(connection)
        if again:
            self._with = {}
            self._known = frozenset(room).union(one.uuid for one in self._places)
            self._read_again_at = self._timer() + _AGAIN_SECONDS

    def _able(
        self, one: Waiting, traits: _Traits | None, places: Iterable[Place]
    ) -> Iterator[str]:
        for place in places:
            capacity = place.capacity
            if one.zone not in (None, place.zone) or any(
                capacity.get(name, amount) < amount for name, amount in one.needs.items()
            ):
                continue
            if traits is None or self._has(place.uuid, traits):
                yield place.uuid

    def _has(self, uuid: str, traits: _Traits) -> bool:
        return all(uuid in self._providers(name) for name in traits.required) and not any(
            uuid in self._providers(name) for name in traits.forbidden
        )

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


def _traits(flavor: Mapping[str, Mapping[str, str]], properties: Mapping[str, str]) -> _Traits:
    asked = requirements(0, 0, 0, flavor.get("extra_specs") or {}, properties)
    return _Traits(asked.required, asked.forbidden)

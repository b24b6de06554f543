"""The hosts as a decision sees them: what the agents tell, joined with what placement counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from common import clock
from placement.client import PlacementClient
from placement.messages import Candidates
from scheduler.hosts import Host, HostTable


class World:
    """Looks at placement and at the table of hosts; ``limit`` caps the candidates."""

    def __init__(self, placement: PlacementClient, table: HostTable, limit: int) -> None:
        self._placement = placement
        self._table = table
        self._limit = limit

    def known(self) -> dict[str, Host]:
        """Every host by provider UUID, without what placement counts."""
        return self._table.all(clock.utcnow())

    def candidates(self, resources: Mapping[str, int]) -> list[Host]:
        """The hosts that have room for the resources. One request to placement."""
        return self._join(self._placement.candidates(resources, limit=self._limit))

    def everything(self, classes: Iterable[str]) -> list[Host]:
        """Every host with its numbers, full ones too: one request to placement a class."""
        merged: dict[str, Host] = {}
        for name in classes:
            found = self._placement.candidates({name: 1}, limit=None)
            merged.update({host.facts.uuid: host for host in self._join(found)})
        for uuid, host in self.known().items():
            # Without room for anything a host is no candidate, and has no numbers.
            merged.setdefault(uuid, host)
        return list(merged.values())

    def _join(self, found: Candidates) -> list[Host]:
        known = self.known()
        return [
            dataclasses.replace(
                known[provider.uuid],
                capacity={name: one.capacity for name, one in provider.resources.items()},
                used={name: one.used for name, one in provider.resources.items()},
                traits=provider.traits,
            )
            for provider in found.providers.values()
            if provider.uuid in known
        ]

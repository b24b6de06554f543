"""The hosts as a decision sees them: what the agents tell, joined with what placement counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from common import clock
from common.errors import Invalid
from common.log import logger
from common.requirements import Requirements
from placement.client import PlacementClient
from placement.messages import Candidates
from scheduler.hosts import Host, HostTable

LOG = logger(__name__)


class World:
    """Looks at placement and at the table of hosts; ``limit`` caps the candidates."""

    def __init__(self, placement: PlacementClient, table: HostTable, limit: int) -> None:
        self._placement = placement
        self._table = table
        self._limit = limit

    def known(self) -> dict[str, Host]:
        """Every host by provider UUID, without what placement counts."""
        return self._table.all(clock.utcnow())

    def candidates(self, needed: Requirements, of: str | None = None) -> list[Host]:
        """The hosts that have the resources and traits; ``of``: of this provider only.

        One request to placement. None, where placement knows no such class or trait: then
        ``everything`` tells why not.
        """
        try:
            found = self._placement.candidates(
                needed.resources,
                needed.required,
                needed.forbidden,
                in_tree=of,
                limit=self._limit,
            )
        except Invalid as error:
            LOG.info("Placement knows of no such thing: %s", error.message)
            return []
        return self._join(found)

    def everything(self, classes: Iterable[str]) -> list[Host]:
        """Every host with its numbers, full ones too: one request to placement a class."""
        merged: dict[str, Host] = {}
        for name in classes:
            try:
                found = self._placement.candidates({name: 1}, limit=None)
            except Invalid:
                # No such class: no host has any of it, as the numbers will say.
                continue
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

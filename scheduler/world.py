"""The hosts as a decision sees them: what the agents tell, joined with what placement counts."""

from __future__ import annotations

from collections.abc import Iterable

from common import clock
from common.errors import Invalid
from common.log import logger
from common.requirements import Requirements
from placement.client import PlacementClient
from placement.messages import Candidates
from scheduler.fleet import Fleet
from scheduler.table import HostTable

LOG = logger(__name__)


class World:
    """Looks at placement and at the table of hosts; ``limit`` caps the candidates."""

    def __init__(self, placement: PlacementClient, table: HostTable, limit: int) -> None:
        self._placement = placement
        self._table = table
        self._limit = limit

    def known(self) -> Fleet:
        """Every host, without what placement counts."""
        return self._table.all(clock.utcnow())

    def candidates(self, needed: Requirements, of: str | None = None) -> Fleet:
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
            found = Candidates((), {}, ())
        return self.known().counted([found], everything=False)

    def everything(self, classes: Iterable[str]) -> Fleet:
        """Every host with its numbers, full ones too: one request to placement a class."""
        found = []
        for name in classes:
            try:
                found.append(self._placement.candidates({name: 1}, limit=None))
            except Invalid:
                # No such class: no host has any of it, as the numbers will say.
                continue
        # Without room for anything a host is no candidate, and has no numbers.
        return self.known().counted(found, everything=True)

"""The hosts as a decision sees them: what the agents tell, joined with what placement counts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from common import clock
from common.errors import Invalid
from common.log import logger
from common.messages.scheduling import RequestSpec
from placement.client import PlacementClient
from placement.messages import Candidates
from scheduler.decide.prefilter import Prefilter, prefilter
from scheduler.filters.resources import needs
from scheduler.filters.service import node_healthy, service_enabled, service_up
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.exhausted import with_exhausted
from scheduler.hosts.reported import HostTable

LOG = logger(__name__)

#: who refuses a host whatever is asked: it takes none of the candidates' places
_OUT_OF_SERVICE = (service_up, service_enabled, node_healthy)


@dataclass(frozen=True)
class Offered:
    """The hosts that placement offers for a request."""

    hosts: HostColumns
    whole: bool
    """Whether there are no others that the request could have."""


class View:
    """Looks at placement and at the table of hosts; ``limit`` caps the candidates."""

    def __init__(self, placement: PlacementClient, table: HostTable, limit: int) -> None:
        self._placement = placement
        self._table = table
        self._limit = limit

    def all_hosts(self) -> HostColumns:
        """Every host, without what placement counts."""
        return self._table.all(clock.utcnow())

    def may_be_cut(self, columns: HostColumns) -> bool:
        """Whether candidates may be fewer than there are."""
        return len(columns) > self._limit

    def candidates(
        self, request: RequestSpec, of: str | None = None, *, wide: bool = False
    ) -> Offered:
        """The hosts that have the resources and traits; ``of``: of this provider only; ``wide``:
        all of them, however many.

        One request to placement. None, where placement knows no such class or trait: then
        ``everything`` tells why not.
        """
        hosts = self.all_hosts()
        prefiltered = Prefilter(provider=of)
        if of is None and not wide:
            prefiltered = prefilter(hosts, request)
        limit = None if wide else self._limit + _out_of_service(hosts, request)
        needed = needs(request)
        try:
            found = self._placement.candidates(
                needed.resources,
                needed.required,
                needed.forbidden,
                member_of=[prefiltered.aggregates] if prefiltered.aggregates else (),
                in_tree=prefiltered.provider,
                limit=limit,
            )
        except Invalid as error:
            LOG.info("Placement knows of no such thing: %s", error.message)
            found = Candidates((), {}, ())
        cut = limit is not None and len(found.uuids) >= limit
        return Offered(
            hosts.counted([found], everything=False), not (cut or prefiltered.aggregates)
        )

    def everything(self, classes: Collection[str]) -> HostColumns:
        """Every host with its numbers, full ones too: one request to placement a class."""
        found = []
        for name in classes:
            try:
                found.append(self._placement.candidates({name: 1}, limit=None))
            except Invalid:
                # No such class: no host has any of it, as the numbers will say.
                continue
        # Without room for anything a host is no candidate, and placement tells no numbers of it.
        return with_exhausted(self.all_hosts().counted(found, everything=True), classes)


def _out_of_service(hosts: HostColumns, request: RequestSpec) -> int:
    """How many hosts nothing is built on now, whatever is asked."""
    refused = np.zeros(len(hosts), np.bool_)
    for accept in _OUT_OF_SERVICE:
        found = accept.refused(hosts, request)
        if found is not None:
            refused |= found
    return int(refused.sum())

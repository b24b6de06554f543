"""The view of a decision: what agents report of hosts, joined with placement's usage."""

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

#: filters whatever is asked: hosts that they refuse don't count against the limit
_OUT_OF_SERVICE = (service_up, service_enabled, node_healthy)


@dataclass(frozen=True)
class Offered:
    """The hosts that placement offers for a request."""

    hosts: HostColumns
    whole: bool
    """Whether these are all that could serve the request."""


class View:
    """Reads placement and the table of hosts; ``limit`` caps the candidates."""

    def __init__(self, placement: PlacementClient, table: HostTable, limit: int) -> None:
        self._placement = placement
        self._table = table
        self._limit = limit

    def all_hosts(self) -> HostColumns:
        """Return all hosts, without usage."""
        return self._table.all(clock.utcnow())

    def may_be_cut(self, columns: HostColumns) -> bool:
        """Return whether the limit may cut the candidates."""
        return len(columns) > self._limit

    def candidates(
        self, request: RequestSpec, of: str | None = None, *, wide: bool = False
    ) -> Offered:
        """Return the hosts with the resources and traits that a request needs.

        ``of`` asks for one provider only, ``wide`` for all hosts, without the limit. One request
        to placement. No host where placement knows no such class or trait: ``everything`` then
        shows why not.
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
            LOG.info("Unknown to placement: %s", error.message)
            found = Candidates((), {}, ())
        cut = limit is not None and len(found.uuids) >= limit
        return Offered(
            hosts.counted([found], everything=False), not (cut or prefiltered.aggregates)
        )

    def everything(self, classes: Collection[str]) -> HostColumns:
        """Return all hosts with their usage, exhausted ones too; one request for each class."""
        found = []
        for name in classes:
            try:
                found.append(self._placement.candidates({name: 1}, limit=None))
            except Invalid:
                # No such class: no host has any of it, as their capacity of 0 shows.
                continue
        return with_exhausted(self.all_hosts().counted(found, everything=True), classes)


def _out_of_service(hosts: HostColumns, request: RequestSpec) -> int:
    """Return how many hosts take no server now, whatever is asked."""
    refused = np.zeros(len(hosts), np.bool_)
    for accept in _OUT_OF_SERVICE:
        found = accept.refused(hosts, request)
        if found is not None:
            refused |= found
    return int(refused.sum())

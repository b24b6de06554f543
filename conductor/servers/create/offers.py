"""Finds a project's flavors for which there would be a host."""

from __future__ import annotations

from collections.abc import Callable

from common.errors import Unavailable
from common.log import logger
from common.messages.scheduling import Decision, RequestSpec
from conductor.cloud import Cloud
from conductor.plans import CreateParams
from conductor.servers.create import no_valid_host
from conductor.store.records import Operation
from conductor.store.servers import flavor_offers

LOG = logger(__name__)


class Offers:
    """Asks once for each request, however many servers it wanted."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        #: the last request without a host, and the flavors that would do
        self._answered: tuple[str, list[str]] = ("", [])

    def names(
        self, operation: Operation, decision: Decision, requested: Callable[[], RequestSpec]
    ) -> list[str]:
        """Return the flavors, the largest first; a few are tried, for all requested servers.

        ``requested`` is the request that found no host.
        """
        within = no_valid_host.limits(decision, operation.asked(CreateParams))
        if within is None or decision.suggestion is None:
            return []
        if self._answered[0] == operation.request_id:
            return self._answered[1]
        with self._cloud.store.read() as connection:
            offers = flavor_offers.offers(connection, operation.project_id, within)
        tried = no_valid_host.candidates(offers, within)
        if not tried:
            return []
        asked, suggestion = requested(), decision.suggestion
        requests = tuple(no_valid_host.with_flavor(asked, suggestion, one) for one in tried)
        try:
            found = self._cloud.scheduler.preview(operation.ctxt, requests)
        except Unavailable as error:
            LOG.info("%s: no flavor is named: %s", operation.title, error.message)
            return []
        names = [one.name for one, at in zip(tried, found, strict=True) if at.host is not None]
        self._answered = (operation.request_id, names)
        return names

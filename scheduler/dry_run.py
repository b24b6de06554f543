"""Dry runs: read the view once, then decide on it without a claim."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from oslo_config import cfg

from common.messages.scheduling import Decision, RequestSpec
from scheduler.columnar.forms import counted_together
from scheduler.decide import whatif
from scheduler.decide.choose import Filter, Weigher
from scheduler.decide.rebalance import plan
from scheduler.explain.outcome import Outcomes
from scheduler.filters.resources import wanted
from scheduler.hosts.columns import HostColumns
from scheduler.messages import Capacity, Movable, Rebalancing
from scheduler.view import View


class DryRun:
    """Answers what-if questions."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        view: View,
        filters: Mapping[str, Filter],
        weighers: Mapping[str, tuple[Weigher, float]],
    ) -> None:
        self._view = view
        self._filters = filters
        self._weighers = weighers
        self._counted = counted_together(weigh for weigh, _ in weighers.values())
        self._outcomes = Outcomes(conf, filters)

    def place(self, requests: Sequence[RequestSpec], without: Collection[str]) -> list[Decision]:
        """Return where the servers would go, one after the other."""
        hosts = self._hosts(requests, without)
        found = self._among_candidates(hosts, requests) if not without else None
        return found or self._outcome(hosts, requests)

    def _among_candidates(
        self, hosts: HostColumns, requests: Sequence[RequestSpec]
    ) -> list[Decision] | None:
        """Place servers of one kind among limited candidates, as a create would; None: can't."""
        kind = requests[0].kind
        if not self._view.may_be_cut(hosts) or any(one.kind != kind for one in requests):
            return None
        offered = self._view.candidates(requests[0])
        if offered.whole:
            return None
        among = offered.hosts.beside(hosts) if self._counted else offered.hosts
        found = self._outcome(among, requests)
        return found if all(one.host is not None for one in found) else None

    def _outcome(self, hosts: HostColumns, requests: Sequence[RequestSpec]) -> list[Decision]:
        tried = whatif.place(hosts, requests, self._filters, self._weighers, self._outcomes.ranked)
        return [
            self._outcomes.won(one.request, one.choice, 0, len(one.hosts))
            if one.choice.ranked
            else self._outcomes.nowhere(one.request, one.choice, one.hosts)
            for one in tried
        ]

    def capacity(self, request: RequestSpec, without: Collection[str]) -> Capacity:
        """Return how many more such servers would fit."""
        return whatif.capacity(self._hosts([request], without), request, self._filters)

    def rebalance(self, servers: Sequence[Movable], limit: int) -> Rebalancing:
        """Return which of these servers would move to fill the hosts more evenly."""
        hosts = self._hosts([server.request for server in servers], ())
        return plan(hosts, servers, self._filters, limit)

    def _hosts(self, requests: Sequence[RequestSpec], without: Collection[str]) -> HostColumns:
        classes = dict.fromkeys(name for request in requests for name in wanted(request))
        classes |= dict.fromkeys(self._counted)
        return self._view.everything(classes).without(without)

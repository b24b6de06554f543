"""Prefer hosts that are idle now; allocation, not load, decides whether a server fits."""

from __future__ import annotations

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import weighing
from scheduler.hosts.host import Host


def _load(host: Host) -> float:
    return -host.facts.cpu_load


@weighing(lambda columns, request: columns.measure(_load))
def load(host: Host, request: RequestSpec) -> float:
    """Return minus the busy share of the processors, as last reported."""
    return _load(host)

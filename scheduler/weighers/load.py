"""Prefer what is quiet now. It only weighs: what is promised counts, whatever is busy."""

from __future__ import annotations

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import weighing
from scheduler.hosts.host import Host


def _load(host: Host) -> float:
    return -host.facts.cpu_load


@weighing(lambda columns, request: columns.measure(_load))
def load(host: Host, request: RequestSpec) -> float:
    """Minus the share of the processors that is busy, as it was seen last."""
    return _load(host)

"""Prefer what is quiet now. It only weighs: what is promised counts, whatever is busy."""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.hosts import Host


def load(host: Host, request: Requested) -> float:
    """Minus the share of the processors that is busy, as it was seen last."""
    return -host.facts.cpu_load

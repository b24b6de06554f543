"""Prefer hosts with more room, by what is promised."""

from __future__ import annotations

from common.messages import Requested
from scheduler.hosts import Host


def ram(host: Host, request: Requested) -> float:
    """Free memory as a share of all."""
    return host.free("MEMORY_MB") / max(host.capacity.get("MEMORY_MB", 0), 1)


def cpu(host: Host, request: Requested) -> float:
    """Free processors as a share of all."""
    return host.free("VCPU") / max(host.capacity.get("VCPU", 0), 1)

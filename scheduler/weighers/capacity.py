"""Prefer hosts with more room: by what is promised, and on the storage as it is."""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.hosts import Host


def ram(host: Host, request: Requested) -> float:
    """Free memory as a share of all."""
    return host.free("MEMORY_MB") / max(host.capacity.get("MEMORY_MB", 0), 1)


def cpu(host: Host, request: Requested) -> float:
    """Free processors as a share of all."""
    return host.free("VCPU") / max(host.capacity.get("VCPU", 0), 1)


def disk(host: Host, request: Requested) -> float:
    """Free disk as a share of all."""
    return host.free("DISK_GB") / max(host.capacity.get("DISK_GB", 0), 1)


def storage(host: Host, request: Requested) -> float:
    """What is really free on the storage for root disks, as a share of all of it."""
    for one in host.facts.storages:
        if one.name == host.facts.vm_storage:
            return one.available_gib / max(one.total_gib, 1)
    return 0.0

"""Is there room by what is promised already? Placement decides; this only says the numbers."""

from __future__ import annotations

from common.messages import Requested
from scheduler.hosts import Host

_UNITS = {"VCPU": "VCPU", "MEMORY_MB": "MiB RAM", "DISK_GB": "GiB disk"}


def wanted(request: Requested) -> dict[str, int]:
    """What a request asks of each resource class; zero amounts are left out (as Nova does)."""
    amounts = {
        "VCPU": request.vcpus,
        "MEMORY_MB": request.memory_mib,
        "DISK_GB": request.disk_gib,
    }
    return {name: amount for name, amount in amounts.items() if amount}


def resources(host: Host, request: Requested) -> str | None:
    """Refuse hosts without room, every short resource with its numbers."""
    short = [
        f"{max(host.free(name), 0)} of {host.capacity.get(name, 0)} {_UNITS[name]} free, "
        f"{amount} asked"
        for name, amount in wanted(request).items()
        if host.free(name) < amount
    ]
    return "; ".join(short) or None

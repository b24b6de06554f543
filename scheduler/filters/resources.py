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
        _reason(host, name, amount)
        for name, amount in wanted(request).items()
        if host.room(name) < amount
    ]
    return "; ".join(short) or None


def _reason(host: Host, name: str, amount: int) -> str:
    if host.free(name) >= amount:
        return f"one server may have {host.largest(name)} {_UNITS[name]} at most, {amount} asked"
    free, capacity = max(host.free(name), 0), host.capacity.get(name, 0)
    return f"{free} of {capacity} {_UNITS[name]} free, {amount} asked"

"""Is there room by what is promised already? Placement decides; this only says the numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from common.messages.scheduling import Requested
from common.requirements import Requirements, requirements
from scheduler.columnar import refusing
from scheduler.fleet import Fleet, Mask
from scheduler.hosts import Host

_UNITS = {"VCPU": "VCPU", "MEMORY_MB": "MiB RAM", "DISK_GB": "GiB disk"}


def needs(request: Requested) -> Requirements:
    """All that a request asks of placement."""
    return requirements(
        request.vcpus,
        request.memory_mib,
        request.disk_gib,
        request.extra_specs,
        request.image_properties,
    )


def wanted(request: Requested) -> Mapping[str, int]:
    """What a request asks of each resource class; zero amounts are left out (as Nova does)."""
    return needs(request).resources


def _full(fleet: Fleet, request: Requested) -> Mask:
    amounts = wanted(request)
    refused = np.full(len(fleet), not amounts)
    for name, amount in amounts.items():
        refused |= fleet.room(name) < amount
    return refused


@refusing(_full)
def resources(host: Host, request: Requested) -> str | None:
    """Refuse hosts without room, every short resource with its numbers."""
    amounts = wanted(request)
    if not amounts:
        return "the flavor asks for nothing: all its resources are 0, so nothing can be claimed"
    short = [
        _reason(host, name, amount) for name, amount in amounts.items() if host.room(name) < amount
    ]
    return "; ".join(short) or None


def _reason(host: Host, name: str, amount: int) -> str:
    unit = _UNITS.get(name, name)
    if host.free(name) >= amount:
        return f"one server may have {host.largest(name)} {unit} at most, {amount} asked"
    free, capacity = max(host.free(name), 0), host.capacity.get(name, 0)
    return f"{free} of {capacity} {unit} free, {amount} asked"

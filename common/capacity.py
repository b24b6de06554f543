"""What a host offers of each resource class, computed from its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from common.guest.hardware import device_class
from common.messages.facts import HostFacts


class Offer(NamedTuple):
    """What a host has of one resource class."""

    total: int
    reserved: int
    allocation_ratio: float

    @property
    def capacity(self) -> int:
        """Return how much may be allocated, as placement computes it."""
        return usable(self.total, self.reserved, self.allocation_ratio)


def usable(total: int, reserved: int, allocation_ratio: float) -> int:
    """Return how much of an inventory may be allocated."""
    return int((total - reserved) * allocation_ratio)


_SIZES: Mapping[str, Callable[[HostFacts], Offer]] = {
    "VCPU": lambda facts: _offer(facts.vcpus, facts.reserved_vcpus, facts.cpu_allocation_ratio),
    "MEMORY_MB": lambda facts: _offer(
        facts.memory_mib, facts.reserved_memory_mib, facts.ram_allocation_ratio
    ),
    "DISK_GB": lambda facts: _offer(
        facts.disk_gib, facts.reserved_disk_gib, facts.disk_allocation_ratio
    ),
}


def _offer(total: int, reserved: int, ratio: float) -> Offer:
    return Offer(total, min(reserved, total), ratio)


def offer(facts: HostFacts, resource_class: str) -> Offer:
    """Return what a host has of a resource class."""
    size = _SIZES.get(resource_class)
    if size is not None:
        return size(facts)
    return Offer(devices(facts.devices.items(), resource_class), 0, 1.0)


def devices(counts: Iterable[tuple[str, int]], resource_class: str) -> int:
    """Return how many mapped devices a resource class counts.

    Names that differ only in characters that a class's name can't have are of one class.
    """
    return sum(count for name, count in counts if device_class(name) == resource_class)


def offers(facts: HostFacts) -> dict[str, Offer]:
    """Return a host's offer of each resource class; classes with a total of 0 are left out."""
    classes = dict.fromkeys((*_SIZES, *map(device_class, facts.devices)))
    found = {name: offer(facts, name) for name in classes}
    return {name: one for name, one in found.items() if one.total > 0}

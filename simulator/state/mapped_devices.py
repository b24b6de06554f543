"""Mapped PCI devices of VMs: on which node each is, and whether it is free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from simulator import propstring
from simulator.errors import PveError
from simulator.state.cluster import Cluster
from simulator.state.model import PciMapping, Vm


def _paths(one: PciMapping, node: str) -> list[str]:
    """Return the devices that a mapping has on a node."""
    entries = (propstring.split(text, "node") for text in one.map)
    return [
        path
        for entry in entries
        if entry.get("node") == node
        for path in entry.get("path", "").split(";")
    ]


def check(cluster: Cluster, vm: Vm) -> None:
    """Raise 500 unless each of a VM's mapped devices is free on its node."""
    wanted = list(_mapped(vm.config))
    if not wanted:
        return
    others = [one for one in cluster.vms.values() if one.running and one.node == vm.node]
    for name in dict.fromkeys(mapping for _, mapping in wanted):
        known = cluster.mappings.get(name)
        if known is None:
            raise PveError(f"PCI device mapping not found for '{name}'")
        there = len(_paths(known, vm.node))
        if not there:
            raise PveError(f"PCI device mapping not found for '{name}' on node '{vm.node}'")
        used = _count(name, (pair for one in others for pair in _mapped(one.config)))
        if there - used < _count(name, wanted):
            raise PveError(f"no free PCI device left in mapping '{name}' on node '{vm.node}'")


def _count(name: str, pairs: Iterable[tuple[str, str]]) -> int:
    return sum(mapping == name for _, mapping in pairs)


def _mapped(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(config.items()):
        mapping = propstring.split(value, "host").get("mapping") if "hostpci" in name else None
        if mapping:
            yield name, mapping

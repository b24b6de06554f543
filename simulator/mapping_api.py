"""Machine types of a node, and mapped PCI devices: `/cluster/mapping/pci`.

Follows the API's schema; `devices` checks a VM's mapped devices when it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from simulator import propstring
from simulator.call import Call
from simulator.cluster import Cluster
from simulator.errors import PveError
from simulator.model import PciMapping, Vm

_MAY_SEE = ("Mapping.Modify", "Mapping.Use", "Mapping.Audit")


def machines(call: Call) -> list[dict[str, str]]:
    """`GET /nodes/{node}/capabilities/qemu/machines`: newest first."""
    major, minor, *_ = call.cluster.version.qemu.split(".")
    versions = [f"{major}.{minor}+pve1", f"{major}.{minor}"] + [f"{old}.0" for old in (8, 7, 6, 5)]
    return [
        {"id": f"pc-{kind}-{version}", "type": kind, "version": version}
        | ({"changes": "A revision of Proxmox VE's own."} if "+" in version else {})
        for kind in ("i440fx", "q35")
        for version in versions
    ]


def mappings(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/mapping/pci`: those that the caller may see."""
    access = call.cluster.access
    return [
        _shown(one)
        for one in call.cluster.mappings.values()
        if any(access.has(call.who, f"/mapping/pci/{one.id}", name) for name in _MAY_SEE)
    ]


def create(call: Call) -> None:
    """`POST /cluster/mapping/pci`; doesn't check that the devices exist."""
    made = PciMapping(call.get("id"), call.get("map").split("\0"), call.get("description"))
    if made.id in call.cluster.mappings:
        raise PveError(f"pci ID '{made.id}' already defined")
    made.mdev = call.flag("mdev")
    call.cluster.mappings[made.id] = made
    call.cluster.save("mapping", made.id, made)


def delete(call: Call) -> None:
    """`DELETE /cluster/mapping/pci/{id}`: succeeds also if there is none."""
    if call.cluster.mappings.pop(call.get("id"), None) is not None:
        call.cluster.drop("mapping", call.get("id"))


def _shown(one: PciMapping) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": one.id, "map": one.map}
    if one.description:
        shown["description"] = one.description
    if one.mdev:
        shown["mdev"] = 1
    return shown


def paths(one: PciMapping, node: str) -> list[str]:
    """Return the devices that a mapping has on a node."""
    entries = (propstring.split(text, "node") for text in one.map)
    return [
        path
        for entry in entries
        if entry.get("node") == node
        for path in entry.get("path", "").split(";")
    ]


def devices(cluster: Cluster, vm: Vm) -> None:
    """Raise 500 unless each of a VM's mapped devices is free on its node."""
    wanted = list(_mapped(vm.config))
    if not wanted:
        return
    others = [one for one in cluster.vms.values() if one.running and one.node == vm.node]
    for name in dict.fromkeys(mapping for _, mapping in wanted):
        known = cluster.mappings.get(name)
        if known is None:
            raise PveError(f"PCI device mapping not found for '{name}'")
        there = len(paths(known, vm.node))
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

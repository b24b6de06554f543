"""Machine types of a node, and mapped PCI devices: `/cluster/mapping/pci`.

Follows the API's schema.
"""

from __future__ import annotations

from typing import Any

from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.model import PciMapping

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

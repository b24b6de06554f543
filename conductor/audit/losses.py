"""What is lost when an operator does what a finding advises. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from common.messages.inventory import ClusterInventory, SeenVm
from conductor.audit.facts import Facts, Finding

_GIB = 1 << 30


def sentence(facts: Facts, finding: Finding) -> str:
    """Return what is lost with what a finding is about, as a remedy begins."""
    return f"Lost with it: {lost_data(facts, finding)}"


def lost_data(facts: Facts, finding: Finding) -> str:
    """Return what is lost: volumes with their sizes, and whose they are."""
    inventory = facts.inventories.get(finding.cluster or "")
    vm = _vm(inventory, finding)
    parts = "; ".join(_parts(finding, inventory)) or "no disk that the cluster lists"
    whose = _owner(facts, finding, vm)
    text = f"{parts}{f', of {whose}' if whose else ''}."
    if inventory is not None and (inventory.unseen or inventory.short):
        text += " Not all could be read, so it may be more."
    return text


def _vm(inventory: ClusterInventory | None, finding: Finding) -> SeenVm | None:
    vms = inventory.vms if inventory is not None else ()
    return next((vm for vm in vms if vm.vmid == finding.vmid), None)


def _parts(finding: Finding, inventory: ClusterInventory | None) -> Iterator[str]:
    evidence = finding.evidence
    if evidence.get("snapshot"):
        yield f"the state that snapshot {evidence['snapshot']} has kept"
    elif evidence.get("volid"):
        size = evidence.get("size_bytes", evidence.get("bytes"))
        yield f"{evidence['volid']} ({_gib(size)})"
    elif evidence.get("vnet"):
        yield f"the network of all guests on vnet {evidence['vnet']}"
    else:
        yield from _disks(finding, inventory)


def _disks(finding: Finding, inventory: ClusterInventory | None) -> Iterator[str]:
    """Yield the disks of a VM, each once: on its node, or on a storage that nodes share."""
    volumes = inventory.volumes if inventory is not None else ()
    for one in sorted(volumes, key=lambda one: one.volid):
        here = one.shared or finding.node in (None, one.node)
        if one.vmid == finding.vmid and here and one.server_uuid is None:
            yield f"{one.volid} ({_gib(one.size_bytes)})"


def _gib(size: int | None) -> str:
    if not size:
        return "size unknown"
    return f"{size / _GIB:.1f} GiB" if size < 10 * _GIB else f"{size // _GIB} GiB"


def _owner(facts: Facts, finding: Finding, vm: SeenVm | None) -> str:
    """Return whose it is: by the record, else by the VM's description."""
    uuid = finding.server_uuid or (vm.server_uuid if vm is not None else None)
    server = facts.servers.get(uuid or "")
    project = server.project_id if server is not None else vm.project_id if vm else None
    user = server.user_id if server is not None else vm.user_id if vm else None
    named = (
        ("volume", finding.evidence.get("volume") or (vm.volume_id if vm else None)),
        ("backup", finding.evidence.get("backup")),
        ("image", finding.evidence.get("image") or (vm.image_id if vm else None)),
        ("network", finding.evidence.get("network")),
        ("server", uuid),
        ("project", project),
        ("user", user),
    )
    return ", ".join(f"{what} {value}" for what, value in named if value)

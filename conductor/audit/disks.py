"""Compares the disks of VMs with the record of their servers. Pure.

Only VMs whose configuration was read in this look show theirs. Volumes have checks of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from common.messages.inventory import SeenDrive
from conductor.audit.facts import Facts, Finding, ServerFacts
from conductor.audit.nics import read_vms
from conductor.rpc.servers.flavors import local_disks_of

_ROOT = "scsi0"
#: an image may choose its bus
_ROOTS = frozenset({_ROOT, "virtio0", "sata0", "ide0"})


def disks(facts: Facts) -> Iterator[Finding]:
    """Yield disks of servers that their VMs lack, or only name."""
    for server, vm in read_vms(facts):
        if vm.drives is None:
            continue
        there = {one.slot for one in vm.drives}
        for slot in () if vm.adopted else _wanted(server):
            if slot not in there and not (slot == _ROOT and there & _ROOTS):
                yield _removed(server, slot)
        yield from (_lost(server, one) for one in vm.drives if one.lost)


def _wanted(server: ServerFacts) -> list[str]:
    """Return the slots of its own disks; the root disk may be a volume."""
    local = [f"scsi{one.slot}" for one in local_disks_of(server.flavor)]
    own = server.image_id and not server.flavor.get("volume_backed")
    return [*([_ROOT] if own else []), *local]


def _removed(server: ServerFacts, slot: str) -> Finding:
    what = "root disk" if slot == _ROOT else "disk"
    text = f"VM {server.vmid} has no {what} {slot} any more: somebody removed it."
    return _finding(server, text, {"option": slot})


def _lost(server: ServerFacts, drive: SeenDrive) -> Finding:
    text = f"VM {server.vmid} names {drive.volid} as {drive.slot}, which its storage has not."
    return _finding(server, text, {"option": drive.slot, "volid": drive.volid})


def _finding(server: ServerFacts, text: str, evidence: dict[str, object]) -> Finding:
    subject = f"{server.uuid}/{evidence['option']}"
    where = (server.cluster, server.node, server.vmid)
    return Finding("disk_missing", subject, text, True, server.uuid, *where, evidence)

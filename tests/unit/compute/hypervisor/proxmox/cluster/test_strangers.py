"""VMs of others are read a few at a time, each in its turn."""

from __future__ import annotations

from common.messages.inventory import SeenReference, SeenTag
from compute.hypervisor.proxmox.cluster.strangers import MOST, Strangers, Used


def test_all_are_read_in_turn_and_what_was_seen_is_kept() -> None:
    vms = dict.fromkeys(range(100, 100 + 2 * MOST + 10), "pve1")
    read: list[int] = []

    def reader(vmid: int, node: str) -> Used:
        read.append(vmid)
        named = SeenReference(vmid, node, "scsi1", "rbd:vm-100009-disk-0")
        return Used((SeenTag(vmid, node, "vmbr0", vmid),), (named,))

    strangers = Strangers()
    first = strangers.look(vms, reader)
    assert (len(first.tags), len(first.references), first.complete) == (MOST, MOST, False)
    assert first.tags[0] == SeenTag(100, "pve1", "vmbr0", 100)
    second, third = strangers.look(vms, reader), strangers.look(vms, reader)
    assert (len(second.tags), len(third.tags), third.complete) == (2 * MOST, len(vms), True)
    assert read == [*vms, *range(100, 100 + 3 * MOST - len(vms))]
    # VMs that are gone are forgotten, and an unreadable one is as it was.
    left = {vmid: node for vmid, node in vms.items() if vmid < 110}
    now = strangers.look(left, lambda *_: None)
    assert [one.vmid for one in now.tags] == [one.vmid for one in now.references] == [*left]
    assert now.complete


def test_one_that_was_never_read_keeps_it_incomplete() -> None:
    assert not Strangers().look({100: "pve1"}, lambda *_: None).complete
    assert Strangers().look({}, lambda *_: Used()) == Used(complete=True)

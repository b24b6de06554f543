"""VMs of others are read a few at a time, each in its turn."""

from __future__ import annotations

from collections.abc import Sequence

from common.messages.facts import NicFacts
from compute.hypervisor.proxmox.cluster.strangers import MOST, Strangers
from compute.messages import SeenTag

MAC = "bc:24:11:00:00:01"


def test_all_are_read_in_turn_and_what_was_seen_is_kept() -> None:
    vms = dict.fromkeys(range(100, 100 + 2 * MOST + 10), "pve1")
    read: list[int] = []

    def reader(vmid: int, _: str) -> Sequence[NicFacts]:
        read.append(vmid)
        return [NicFacts(MAC, "vmbr0", vmid), NicFacts(MAC, "vmbr0")]

    strangers = Strangers()
    first, complete = strangers.look(vms, reader)
    assert (len(first), complete) == (MOST, False)
    assert first[0] == SeenTag(100, "pve1", "vmbr0", 100)
    second, _ = strangers.look(vms, reader)
    third, complete = strangers.look(vms, reader)
    assert (len(second), len(third), complete) == (2 * MOST, len(vms), True)
    assert read == [*vms, *range(100, 100 + 3 * MOST - len(vms))]
    # Those that went are forgotten, and one that can't be read is as it was.
    left = {vmid: node for vmid, node in vms.items() if vmid < 110}
    now, complete = strangers.look(left, lambda *_: None)
    assert ([one.vmid for one in now], complete) == ([*left], True)


def test_one_that_was_never_read_keeps_it_incomplete() -> None:
    assert Strangers().look({100: "pve1"}, lambda *_: None) == ((), False)
    assert Strangers().look({}, lambda *_: ()) == ((), True)

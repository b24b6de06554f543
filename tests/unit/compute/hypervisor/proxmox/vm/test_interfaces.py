"""How an interface stands in a list of pending changes."""

from __future__ import annotations

from typing import Any

import pytest

from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.vm.devices import Seen, free_slot, seen
from compute.hypervisor.proxmox.vm.interfaces import device, has_mac, slots

MAC = "fa:16:3e:00:00:01"
TEXT = "virtio=FA:16:3E:00:00:01,bridge=vmbr0"
OTHER = "virtio=FA:16:3E:00:00:02,bridge=vmbr0"


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], Seen()),
        ([{"key": "net0", "value": OTHER}], Seen()),
        ([{"key": "net1", "value": TEXT}], Seen("net1")),
        ([{"key": "net1", "pending": TEXT}], Seen(None, "net1")),
        ([{"key": "net1", "value": TEXT, "delete": 1}], Seen("net1", None, leaving=True)),
        ([{"key": "net1", "value": TEXT, "pending": TEXT + ",mtu=1450"}], Seen("net1")),
        ([{"key": "net1", "value": TEXT, "pending": OTHER}], Seen("net1", None, leaving=True)),
        ([{"key": "description", "value": TEXT}], Seen()),
    ],
)
def test_how_it_stands(entries: list[dict[str, Any]], expected: Seen) -> None:
    found = seen(entries, device(MAC))
    assert found == expected
    assert found.gone == (expected.slot is None and expected.waiting is None)


def test_a_mac_is_matched_as_a_whole() -> None:
    assert has_mac(TEXT, MAC)
    assert has_mac("virtio=FA:16:3E:00:00:01", MAC)
    assert not has_mac(TEXT, MAC[:-1])
    assert not has_mac(None, MAC)


def test_the_slot_that_is_wanted_or_the_first_free_one() -> None:
    used = [{"key": "net0"}, {"key": "net1", "pending": TEXT}]
    assert free_slot(used, slots(4), "interface") == "net4"
    assert free_slot(used, slots(1), "interface") == "net2"
    with pytest.raises(HypervisorError):
        free_slot([{"key": f"net{number}"} for number in range(32)], slots(0), "interface")

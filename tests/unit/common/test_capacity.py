"""What hosts offer of each resource class."""

from __future__ import annotations

from common.capacity import Offer, offer, offers, usable
from tests.unit.compute.fakes import some_facts


def test_an_offer_is_what_is_there_less_what_is_reserved() -> None:
    facts = some_facts(
        vcpus=8, cpu_allocation_ratio=4.0, memory_mib=1000, reserved_memory_mib=2000
    )
    assert offer(facts, "VCPU") == Offer(8, 0, 4.0)
    assert offer(facts, "VCPU").capacity == 32
    assert offer(facts, "MEMORY_MB").capacity == 0, "no more is reserved than there is"


def test_devices_of_one_class_are_counted_together() -> None:
    facts = some_facts(disk_gib=0, devices={"gpu-a": 2, "gpu.a": 1, "nic": 0})
    assert offer(facts, "CUSTOM_PCI_GPU_A") == Offer(3, 0, 1.0)
    assert offer(facts, "CUSTOM_PCI_ELSE").total == 0
    assert offers(facts).keys() == {"VCPU", "MEMORY_MB", "CUSTOM_PCI_GPU_A"}


def test_capacity_is_rounded_down_as_placement_does() -> None:
    assert usable(7, 2, 1.5) == 7

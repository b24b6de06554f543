"""The virtual hardware that a host can give, and that none can."""

from __future__ import annotations

from scheduler.filters.guest import guest_hardware
from tests.unit.scheduler.test_choose import a_host, a_request


def test_what_no_guest_can_have() -> None:
    request = a_request(extra_specs={"hw:cpu_policy": "dedicated"})
    assert "guests can't be bound to processors" in str(guest_hardware(a_host(), request))
    assert guest_hardware(a_host(), a_request()) is None
    assert guest_hardware(a_host(), a_request(extra_specs={"hw:cpu_policy": "shared"})) is None


def test_machine_types_newer_than_the_host() -> None:
    request = a_request(image_properties={"hw_machine_type": "pc-q35-10.1"})
    assert guest_hardware(a_host(machine_version="9.2"), request) == (
        "its machine types are 9.2 at the newest, hw_machine_type=pc-q35-10.1 asked"
    )
    for fitting in ("10.1", "10.2", ""):
        assert guest_hardware(a_host(machine_version=fitting), request) is None


def test_mapped_devices() -> None:
    request = a_request(extra_specs={"pci_passthrough:alias": "gpu:2"})
    assert guest_hardware(a_host(devices={"gpu": 1}), request) == (
        "1 devices gpu on the node, 2 asked"
    )
    assert guest_hardware(a_host(devices={"gpu": 2}), request) is None

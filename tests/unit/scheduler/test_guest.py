"""The virtual hardware that a host can give, and that none can."""

from __future__ import annotations

import pytest

from scheduler.decide.choose import choose
from scheduler.filters.guest import guest_hardware
from scheduler.filters.image import image_properties
from scheduler.filters.resources import resources
from tests.unit.scheduler.decide.test_choose import a_host, a_request


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
        "1 device gpu on the node, 2 asked"
    )
    assert guest_hardware(a_host(devices={"gpu": 2}), request) is None


@pytest.mark.parametrize(
    ("wanted", "refused"),
    [
        (">=8.4", False),
        (">= 8.4, <9", True),
        ("==9.2", False),
        ("<9", True),
        ("newest", True),
        ("9.2", True),
    ],
)
def test_images_name_the_version_of_the_hypervisor(wanted: str, refused: bool) -> None:
    host = a_host(hypervisor_version="9.2.11")
    for name in ("img_hv_requested_version", "img_hv_requires", "hypervisor_version_requires"):
        why = image_properties(host, a_request(image_properties={name: wanted}))
        assert (why is not None) == refused
    assert image_properties(a_host(), a_request(image_properties={name: ">=1"})) == (
        "version unknown, the image needs hypervisor_version_requires=>=1"
    )


@pytest.mark.parametrize("name", ["", "vcpu", "A B"])
def test_a_name_that_is_no_resource_class_is_reported(name: str) -> None:
    request = a_request(extra_specs={f"resources:{name}": "1"})
    reason = f"the flavor's extra spec resources:{name} names no resource class"
    assert resources(a_host(), request) == reason
    choice = choose([a_host()], request, {"r": resources}, {})
    assert list(choice.refused["r"].values()) == [reason]


def test_who_asks_for_nothing_is_answered_so() -> None:
    nothing = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    [*refused] = (
        choose([a_host()], a_request(extra_specs=nothing), {"r": resources}, {})
        .refused["r"]
        .values()
    )
    assert refused == [
        "the flavor asks for nothing: all its resources are 0, so nothing can be claimed"
    ]

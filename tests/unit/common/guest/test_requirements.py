"""Extra specs and image properties as resources and traits."""

from __future__ import annotations

from typing import Any

from common.guest.requirements import Requirements, requirements


def of(specs: dict[str, str] | None = None, image: dict[str, str] | None = None) -> Requirements:
    return requirements(2, 2048, 10, specs or {}, image or {})


def test_the_sizes_alone() -> None:
    sizes = {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 10}
    assert of() == Requirements(sizes, frozenset(), frozenset())
    assert "DISK_GB" not in requirements(1, 64, 0, {}, {}).resources


def test_resources_are_replaced_added_and_taken_away() -> None:
    specs = {"resources:VCPU": "0", "resources:CUSTOM_GPU": "1", "resources:DISK_GB": "no"}
    assert of(specs).resources == {"MEMORY_MB": 2048, "DISK_GB": 10, "CUSTOM_GPU": 1}


def test_traits_of_flavor_and_image() -> None:
    found = of(
        {"trait:A": "required", "trait:B": "forbidden", "trait:C": "maybe", "hw:x": "required"},
        {"trait:D": "required"},
    )
    assert (found.required, found.forbidden) == (frozenset("AD"), frozenset("B"))


def test_firmware_secure_boot_and_tpm_are_traits() -> None:
    wanted: Any = of(
        {"os:secure_boot": "required", "hw:tpm_version": "2.0"}, {"hw_firmware_type": "UEFI"}
    ).required
    assert wanted == {
        "COMPUTE_FIRMWARE_UEFI",
        "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
        "COMPUTE_SECURITY_TPM_2_0",
    }
    assert of({}, {"hw_firmware_type": "bios", "os_secure_boot": "optional"}).required == set()

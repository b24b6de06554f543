"""Compute the resources and traits that a server needs of its host. Pure.

The flavor's sizes and extra specs and the image's properties become one ``Requirements``, as
nova/scheduler/utils.py (ResourceRequest) reads them. Values that can't be understood are left
out, as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from common.guest.asked import CannotError
from common.guest.hardware import device_class, devices

_RESOURCES = "resources:"
_TRAIT = "trait:"

#: (extra spec, image property, value → trait that is required)
_WANTED_FEATURES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("", "hw_firmware_type", {"uefi": "COMPUTE_FIRMWARE_UEFI"}),
    ("os:secure_boot", "os_secure_boot", {"required": "COMPUTE_SECURITY_UEFI_SECURE_BOOT"}),
    (
        "hw:tpm_version",
        "hw_tpm_version",
        {"1.2": "COMPUTE_SECURITY_TPM_1_2", "2.0": "COMPUTE_SECURITY_TPM_2_0"},
    ),
)


@dataclass(frozen=True)
class Requirements:
    """Resources to claim from a host, and traits that it must and must not have."""

    resources: Mapping[str, int]
    """Resource class → amount, over 0; VCPU, MiB and GiB for the standard ones."""
    required: frozenset[str]
    forbidden: frozenset[str]


def requirements(
    vcpus: int,
    memory_mib: int,
    disk_gib: int,
    extra_specs: Mapping[str, str],
    image_properties: Mapping[str, str],
) -> Requirements:
    """Return the requirements of a server of these sizes, in MiB and GiB.

    ``resources:CLASS=N`` in the extra specs replaces what the sizes say of a class, or adds one;
    0 takes it away. ``trait:NAME=required|forbidden`` counts in both. Mapped devices
    (``pci_passthrough:alias``) are counted by a class of each name.
    """
    amounts = {"VCPU": vcpus, "MEMORY_MB": memory_mib, "DISK_GB": disk_gib}
    amounts |= _devices(extra_specs)
    for key, value in extra_specs.items():
        if key.startswith(_RESOURCES) and value.isascii() and value.isdigit():
            amounts[key.removeprefix(_RESOURCES)] = int(value)
    traits: dict[str, set[str]] = {"required": set(), "forbidden": set()}
    for source in (extra_specs, image_properties):
        for key, value in source.items():
            if key.startswith(_TRAIT) and value in traits:
                traits[value].add(key.removeprefix(_TRAIT))
    for spec, image_property, known in _WANTED_FEATURES:
        wanted = str(extra_specs.get(spec) or image_properties.get(image_property) or "").lower()
        if wanted in known:
            traits["required"].add(known[wanted])
    return Requirements(
        {name: amount for name, amount in amounts.items() if amount},
        frozenset(traits["required"]),
        frozenset(traits["forbidden"]),
    )


def _devices(extra_specs: Mapping[str, str]) -> dict[str, int]:
    """Return mapped devices, one class per kind."""
    found: dict[str, int] = {}
    try:
        asked = devices(extra_specs)
    except CannotError:
        return {}
    for name, count in asked.items():
        found[device_class(name)] = found.get(device_class(name), 0) + count
    return found

"""Validation of extra specs: a table of the names that mean something, and their values.

Since 2.86 invalid values, and names that their namespace doesn't have, are refused when they are
set. Facts: nova/api/validation/extra_specs. Names without a namespace, and
those of other namespaces, are the operator's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import os_resource_classes
import os_traits
from oslo_utils import strutils

from common.errors import Invalid

#: the minor microversion since which values are validated
SINCE = 86

#: returns what is wrong with a value, or None
Check = Callable[[str], str | None]


def _number(least: int | None = None) -> Check:
    def check(value: str) -> str | None:
        text = value.removeprefix("-")
        if not (text.isascii() and text.isdigit()):
            return "is no whole number"
        return f"is less than {least}" if least is not None and int(value) < least else None

    return check


def _among(*values: str) -> Check:
    def check(value: str) -> str | None:
        return None if value in values else f"is not one of {', '.join(values)}"

    return check


def _like(pattern: str, what: str) -> Check:
    compiled = re.compile(pattern, re.ASCII)

    def check(value: str) -> str | None:
        return None if compiled.fullmatch(value) else f"is no {what}"

    return check


def _flag(value: str) -> str | None:
    try:
        strutils.bool_from_string(value, strict=True)
    except ValueError:
        return "is neither true nor false"
    return None


def _anything(value: str) -> str | None:
    return None


_CPUS = _like(
    r"\^?[0-9]+((-[0-9]+)?(,\^?[0-9]+(-[0-9]+)?)?)*", "list of processors, such as 0-3,^1"
)
_GROUP = r"[a-zA-Z0-9_-]{0,64}"
_CUSTOM = r"CUSTOM_[A-Z0-9_]+"
_CLASS = "|".join([*map(re.escape, os_resource_classes.STANDARDS), _CUSTOM])
_RESOURCE = "(cpu|memory|disk_io|vif)"
_TRAIT = "|".join([*map(re.escape, os_traits.get_traits()), _CUSTOM])

#: pattern of the name → what is wrong with a value
_KNOWN: Mapping[str, Check] = {
    rf"resources{_GROUP}:({_CLASS})": _number(0),
    rf"trait{_GROUP}:({_TRAIT})": _among("required", "forbidden"),
    "group_policy": _among("isolate", "none"),
    "accel:device_profile": _anything,
    "hide_hypervisor_id": _flag,
    "os:secure_boot": _among("disabled", "required", "optional"),
    "pci_passthrough:alias": _like(
        r"[^:]+:[0-9]+(\s*,\s*[^:]+:[0-9]+)*", "list of NAME:COUNT, such as gpu:1,nic:2"
    ),
    "hw:cpu_policy": _among("dedicated", "shared", "mixed"),
    "hw:cpu_thread_policy": _among("prefer", "isolate", "require"),
    "hw:emulator_threads_policy": _among("isolate", "share"),
    "hw:pci_numa_affinity_policy": _among("required", "preferred", "legacy", "socket"),
    "hw:mem_encryption_model": _among("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx"),
    "hw:mem_page_size": _like(r"large|small|any|[0-9]+([kKMGT]i?)?(b|bit|B)?", "size of pages"),
    "hw:tpm_model": _among("tpm-tis", "tpm-crb"),
    "hw:tpm_version": _among("1.2", "2.0"),
    "hw:tpm_secret_security": _among("user", "host", "deployment"),
    "hw:watchdog_action": _among("none", "pause", "poweroff", "reset", "disabled"),
    "hw:viommu_model": _among("intel", "smmuv3", "virtio", "auto"),
    "hw:maxphysaddr_mode": _among("passthrough", "emulate"),
    "hw:pmem": _like(r"([a-zA-Z0-9_]+,?)+", "list of names"),
    r"hw:(cpu_realtime_mask|cpu_dedicated_mask|numa_cpus\.[0-9]+)": _CPUS,
    r"hw:(numa_nodes|numa_mem\.[0-9]+|maxphysaddr_bits)": _number(1),
    r"hw:cpu_(max_)?(sockets|cores|threads)": _number(1),
    r"hw:(serial_port_count|redirected_usb_ports)|hw_rng:rate_(bytes|period)": _number(0),
    "hw_video:ram_max_mb": _number(0),
    r"quota:(cpu_(shares|period|quota)|disk_(read|write|total)_(bytes|iops)_sec"
    r"|vif_(inbound|outbound)_(average|peak|burst))": _number(0),
    rf"quota:{_RESOURCE}_(limit|reservation|shares_share)": _number(),
    rf"quota:{_RESOURCE}_shares_level": _anything,
    r"hw_rng:allowed|hw:(cpu_realtime|hide_hypervisor_id|locked_memory|boot_menu|pmu"
    r"|vif_multiqueue_enabled|mem_encryption|virtio_packed_ring|ephemeral_encryption"
    r"|firmware_stateless)": _flag,
    r"hw:(ephemeral_encryption_format|sound_model|usb_model|input_bus)": _anything,
}
_CHECKS = tuple((re.compile(pattern, re.ASCII), check) for pattern, check in _KNOWN.items())
#: namespaces that have no other names
_CLOSED = re.compile(
    rf"(resources{_GROUP}|trait{_GROUP}|accel|hw|hw_rng|hw_video|os|pci_passthrough|quota):.*"
)


def check(specs: Mapping[str, str], version: int) -> None:
    """Raise Invalid for the first invalid extra spec."""
    for problem in _problems(specs) if version >= SINCE else ():
        raise Invalid(problem)


def _problems(specs: Mapping[str, str]) -> Iterator[str]:
    for name, value in specs.items():
        wrong = next((found for pattern, found in _CHECKS if pattern.fullmatch(name)), None)
        if wrong is None:
            if _CLOSED.fullmatch(name):
                yield f"There is no extra spec {name}."
        elif problem := wrong(value):
            yield f"The extra spec {name}={value} {problem}."

"""Diagnostics of a server, in the two forms that they have had."""

from __future__ import annotations

from typing import Any

from common.messages.guests import Diagnostics, DiskUse, NicUse


def free_form(found: Diagnostics) -> dict[str, Any]:
    """Return what clients get before 2.48: numbers under the names of Nova's libvirt driver.

    Memory is in KiB there; what isn't known is left out.
    """
    view: dict[str, Any] = {"memory": found.memory_mib << 10}
    if found.memory_used_mib is not None:
        view["memory-actual"] = found.memory_mib << 10
        view["memory-rss"] = found.memory_used_mib << 10
    for disk in found.disks:
        view |= {
            f"{disk.name}_read_req": disk.read_requests,
            f"{disk.name}_read": disk.read_bytes,
            f"{disk.name}_write_req": disk.write_requests,
            f"{disk.name}_write": disk.write_bytes,
            f"{disk.name}_errors": disk.errors,
        }
    for nic in found.nics:
        view |= {f"{nic.name}_rx": nic.rx_bytes, f"{nic.name}_tx": nic.tx_bytes}
    return {name: value for name, value in view.items() if value is not None}


def standardized(found: Diagnostics) -> dict[str, Any]:
    """Return what clients get since 2.48: always the same keys, null where it isn't known."""
    return {
        "state": found.power_state.name.lower(),
        "driver": "libvirt",  # of the names that clients know, the one of QEMU
        "hypervisor": "kvm",
        "hypervisor_os": "linux",
        "uptime": found.uptime_seconds,
        "config_drive": found.config_drive,
        "num_cpus": found.vcpus,
        "num_nics": len(found.nics),
        "num_disks": len(found.disks),
        "cpu_details": [_processor(number, found) for number in range(found.vcpus)],
        "nic_details": [_nic(nic) for nic in found.nics],
        "disk_details": [_disk(disk) for disk in found.disks],
        "memory_details": {"maximum": found.memory_mib, "used": found.memory_used_mib},
    }


def _processor(number: int, found: Diagnostics) -> dict[str, Any]:
    """Return one processor; the hypervisor reports only the total use of all processors."""
    of_one = found.cpu_percent if found.vcpus == 1 else None
    return {"id": number, "time": None, "utilisation": of_one}


def _nic(nic: NicUse) -> dict[str, Any]:
    unknown = dict.fromkeys(
        f"{way}_{what}" for way in ("rx", "tx") for what in ("errors", "drop", "packets", "rate")
    )
    known = {"mac_address": nic.mac, "rx_octets": nic.rx_bytes, "tx_octets": nic.tx_bytes}
    return {**known, **unknown}


def _disk(disk: DiskUse) -> dict[str, Any]:
    return {
        "read_bytes": disk.read_bytes,
        "read_requests": disk.read_requests,
        "write_bytes": disk.write_bytes,
        "write_requests": disk.write_requests,
        "errors_count": disk.errors,
    }

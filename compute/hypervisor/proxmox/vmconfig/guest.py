"""A guest's virtual hardware in Proxmox VE's options. Pure.

None of them is reserved to root@pam: `affinity`, `hugepages` and `args` can't be set with a token,
and `common.guest.limits` refuses what needs them earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.failures import Verdict
from common.guest.asked import CannotError
from common.guest.hardware import Hardware, read
from common.guest.topology import cpu_list
from common.messages.commands import Build
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.vmconfig.disks import form as of_form

#: the most queues of a network interface
_MAX_QUEUES = 64
_VGA = {"vga": "std"}
#: Windows 11 and Server 2022 and newer; Proxmox VE tunes the guest by it
_WINDOWS, _LINUX = "win11", "l26"


def of(build: Build) -> Hardware:
    """Return the guest's hardware. Raises configuration if it is impossible."""
    return of_size(build.vcpus, build.memory_mib, build.extra_specs, build.image_properties)


def of_size(
    vcpus: int,
    memory_mib: int,
    extra_specs: Mapping[str, str],
    image_properties: Mapping[str, str],
) -> Hardware:
    """Do the same for a guest of this size."""
    try:
        return read(vcpus, memory_mib, extra_specs, image_properties)
    except CannotError as error:
        raise HypervisorError(
            Category.CONFIGURATION,
            f"The server asks for what can't be had: {error}.",
            verdict=Verdict.FATAL,
        ) from error


def options(found: Hardware, cpu_type: str) -> dict[str, Any]:
    """Return all options of the guest's hardware but disks, network and memory's size."""
    values: dict[str, Any] = {
        "ostype": _WINDOWS if found.windows else _LINUX,
        "cpu": f"{cpu_type},hidden=1" if found.hidden else cpu_type,
        "cores": found.cores,
        "vga": _vga(found),
    }
    if found.rng is not None:
        values["rng0"] = _rng(*found.rng)
    if found.sockets > 1:
        values["sockets"] = found.sockets
    if found.numa:
        values["numa"] = 1
    for number, node in enumerate(found.numa):
        values[f"numa{number}"] = f"cpus={cpu_list(node.cpus, ';')},memory={node.memory_mib}"
    if found.machine:
        viommu = f",viommu={found.iommu}" if found.iommu else ""
        values["machine"] = f"{found.machine}{viommu}"
    if found.uefi:
        values["bios"] = "ovmf"
    if found.watchdog:
        values["watchdog"] = f"model=i6300esb,action={found.watchdog}"
    values |= {f"serial{number}": "socket" for number in range(found.serial_ports)}
    return values | _devices(found)


def _vga(found: Hardware) -> str:
    model = _VGA.get(found.video_model, found.video_model)
    if not found.video_ram_mib or model == "none":
        return model
    return f"{model},memory={found.video_ram_mib}"


def _rng(rate: int, period: int) -> str:
    """Return the generator: the node's pool, which no guest can exhaust, bounded by QEMU."""
    bound = f",max_bytes={rate},period={period or 1000}" if rate else ""
    return f"source=/dev/urandom{bound}"


def _devices(found: Hardware) -> dict[str, str]:
    names = [name for name, count in found.devices for _ in range(count)]
    express = ",pcie=1" if found.q35 else ""
    return {f"hostpci{number}": f"mapping={name}{express}" for number, name in enumerate(names)}


def network(found: Hardware, vcpus: int) -> tuple[str, int]:
    """Return (model of the interfaces, their queues; 0: the model's default)."""
    queues = min(vcpus, _MAX_QUEUES) if found.multiqueue and vcpus > 1 else 0
    return found.vif_model, queues if found.vif_model == "virtio" else 0


#: Nova's bounds of disks → Proxmox VE's, and what they are divided by: it counts MiB
_DISK_LIMITS = {
    "disk_read_bytes_sec": ("mbps_rd", 1 << 20),
    "disk_write_bytes_sec": ("mbps_wr", 1 << 20),
    "disk_total_bytes_sec": ("mbps", 1 << 20),
    "disk_read_iops_sec": ("iops_rd", 1),
    "disk_write_iops_sec": ("iops_wr", 1),
    "disk_total_iops_sec": ("iops", 1),
}


def disk_limits(found: Hardware) -> dict[str, str]:
    """Return the options that bound each of the VM's own disks."""
    return {
        name: _decimal(value, unit)
        for limit, value in found.throttle.disks
        for name, unit in [_DISK_LIMITS[limit]]
    }


def rate(found: Hardware) -> str:
    """Return the bound of each interface in MiB a second; empty: none."""
    return _decimal(found.throttle.vif_kib, 1024) if found.throttle.vif_kib else ""


def _decimal(value: int, unit: int) -> str:
    """Return a quotient as a decimal; never 0, which would be no bound."""
    text = f"{max(value / unit, 1e-6):.6f}"
    return text.rstrip("0").rstrip(".")


def disks(found: Hardware, storage: str, storage_type: str) -> dict[str, str]:
    """Return the small disks for the state of firmware and TPM; Proxmox VE sets their sizes."""
    values = {}
    if found.uefi:
        # Secure boot needs the keys; without them, unsigned systems boot too.
        keys = int(found.secure_boot)
        # Else it may be raw, which has no snapshots.
        form = of_form(storage_type)
        values["efidisk0"] = f"{storage}:1,efitype=4m,pre-enrolled-keys={keys}{form}"
    if found.tpm:
        values["tpmstate0"] = f"{storage}:1,version=v{found.tpm}"
    return values

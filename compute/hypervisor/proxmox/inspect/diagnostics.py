"""How one VM does: its processors, memory, disks and interfaces, from two reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from common.messages.guests import Diagnostics, DiskUse, GuestTarget, NicUse
from compute.hypervisor.proxmox.cluster import proven
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.vmconfig import hardware, power_states
from compute.hypervisor.proxmox.vmconfig.disks import CONFIG_DRIVE

_MIB = 1 << 20
_TAP = re.compile(r"tap[0-9]+i([0-9]+)")
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}", re.IGNORECASE)
_FAILED = ("failed_rd_operations", "failed_wr_operations", "failed_flush_operations")


def diagnose(shared: Shared, target: GuestTarget) -> Diagnostics:
    """Return how the VM does. Raises HypervisorError, also unless it is the server's."""
    config = proven.config(shared, target.node, target.vmid, target.server_uuid)
    path = f"nodes/{target.node}/qemu/{target.vmid}/status/current"
    return diagnostics(config, shared.client.get(path))


def diagnostics(config: Mapping[str, Any], status: Mapping[str, Any]) -> Diagnostics:
    """Return what a configuration and an answer of ``status/current`` say. Pure."""
    cpu = status.get("cpu")
    used = status.get("mem")
    return Diagnostics(
        power_states.current(status),
        uptime_seconds=int(status.get("uptime", 0)),
        vcpus=int(status.get("cpus", 0)),
        cpu_percent=None if cpu is None else round(float(cpu) * 100),
        memory_mib=int(status.get("maxmem", hardware.memory_mib(config) * _MIB)) // _MIB,
        memory_used_mib=None if used is None else int(used) // _MIB,
        config_drive=CONFIG_DRIVE in config,
        disks=tuple(_disks(config, status.get("blockstat") or {})),
        nics=tuple(_nics(config, status.get("nics") or {})),
    )


def _disks(
    config: Mapping[str, Any], transferred: Mapping[str, Mapping[str, Any]]
) -> Iterator[DiskUse]:
    for name in sorted(transferred):
        if "media=cdrom" in str(config.get(name, "")):
            continue
        of = transferred[name]
        yield DiskUse(
            name,
            read_bytes=of.get("rd_bytes"),
            read_requests=of.get("rd_operations"),
            write_bytes=of.get("wr_bytes"),
            write_requests=of.get("wr_operations"),
            errors=sum(int(of.get(one, 0)) for one in _FAILED),
        )


def _nics(
    config: Mapping[str, Any], transferred: Mapping[str, Mapping[str, Any]]
) -> Iterator[NicUse]:
    """Yield the interfaces; Proxmox VE counts in and out from the guest's side."""
    for name in sorted(transferred):
        number = _TAP.fullmatch(name)
        text = str(config.get(f"net{number[1]}", "")) if number else ""
        mac = _MAC.search(text)
        of = transferred[name]
        yield NicUse(name, mac[0].lower() if mac else None, of.get("netin"), of.get("netout"))

"""Reads of virtual machines: lists, configuration, pending changes, current state."""

from __future__ import annotations

import re
import time
from typing import Any

from simulator.errors import PveError
from simulator.qemu import ha_power
from simulator.qemu.drives import drives_of
from simulator.request.call import Call
from simulator.request.vmschema import typed
from simulator.state.cluster import Cluster
from simulator.state.disks import parse_size
from simulator.state.model import MIB, Vm

_SUBDIRS = [
    "config",
    "cloudinit",
    "pending",
    "status",
    "unlink",
    "vncproxy",
    "termproxy",
    "migrate",
    "resize",
    "move",
    "rrd",
    "rrddata",
    "monitor",
    "agent",
    "snapshot",
    "spiceproxy",
    "sendkey",
    "firewall",
    "mtunnel",
    "remote_migrate",
]
_BLOCK_COUNTERS = [
    "failed_flush_operations",
    "failed_rd_operations",
    "failed_unmap_operations",
    "failed_wr_operations",
    "failed_zone_append_operations",
    "flush_operations",
    "flush_total_time_ns",
    "idle_time_ns",
    "invalid_flush_operations",
    "invalid_rd_operations",
    "invalid_unmap_operations",
    "invalid_wr_operations",
    "invalid_zone_append_operations",
    "rd_bytes",
    "rd_merged",
    "rd_operations",
    "rd_total_time_ns",
    "unmap_bytes",
    "unmap_merged",
    "unmap_operations",
    "unmap_total_time_ns",
    "wr_bytes",
    "wr_highest_offset",
    "wr_merged",
    "wr_operations",
    "wr_total_time_ns",
    "zone_append_bytes",
    "zone_append_merged",
    "zone_append_operations",
    "zone_append_total_time_ns",
]
_PRESSURE = [
    "pressurecpufull",
    "pressurecpusome",
    "pressureiofull",
    "pressureiosome",
    "pressurememoryfull",
    "pressurememorysome",
]
_SUPPORT: dict[str, Any] = {
    "backup-access-api": True,
    "backup-fleecing": True,
    "backup-max-workers": True,
    "pbs-dirty-bitmap": True,
    "pbs-dirty-bitmap-migration": True,
    "pbs-dirty-bitmap-savevm": True,
    "pbs-library-version": "1.5.1",
    "pbs-masterkey": True,
    "query-bitmap-info": True,
}


def memory_of(vm: Vm) -> int:
    """Return a VM's configured memory in bytes."""
    text = vm.config.get("memory", "512")
    return int(text.partition("=")[2] or text) * MIB


def cpus_of(vm: Vm) -> int:
    """Return the number of virtual CPUs that a VM starts with."""
    cores = int(vm.config.get("cores", "1")) * int(vm.config.get("sockets", "1"))
    return int(vm.config.get("vcpus", cores))


def disk_of(vm: Vm) -> int:
    """Return the size in bytes of a VM's boot disk, or of its first disk."""
    order = re.split(r"[;=]", vm.config.get("boot", ""))[1:]
    found = [drive for drive in drives_of(vm.config) if drive.storage and not drive.cdrom]
    booting = [drive for drive in found if drive.name in order] or [
        drive for drive in found if not drive.name.startswith(("efi", "tpm"))
    ]
    return parse_size(booting[0].options.get("size", "0")) if booting else 0


def usage(vm: Vm) -> dict[str, Any]:
    """Return the statistics in every list of VMs."""
    running = vm.running
    memory = memory_of(vm)
    return {
        "cpu": 0.01 if running else 0,
        "disk": 0,
        "diskread": 16_683_058 if running else 0,
        "diskwrite": 0,
        "maxdisk": disk_of(vm),
        "maxmem": memory,
        "mem": memory // 4 if running else 0,
        "memhost": memory // 4 if running else 0,
        "netin": 220 if running else 0,
        "netout": 656 if running else 0,
        "uptime": max(1, int(time.time() - vm.started)) if running else 0,
    }


def brief(vm: Vm, *, full: bool = False) -> dict[str, Any]:
    """Return one VM as in the node's list."""
    shown = {
        **usage(vm),
        "cpus": cpus_of(vm),
        "name": vm.config.get("name", f"VM {vm.vmid}"),
        "status": vm.status,
        "vmid": vm.vmid,
    }
    if not full or not vm.running:
        shown.pop("diskread")
        shown.pop("diskwrite")
    if any(name.startswith("serial") for name in vm.config):
        shown["serial"] = 1
    for name in ("tags", "lock"):
        if name in vm.config:
            shown[name] = vm.config[name]
    if vm.template:
        shown["template"] = 1
    if full:
        shown["qmpstatus"] = vm.qmp
    if vm.running:
        shown["pid"] = vm.pid
        shown.update(dict.fromkeys(_PRESSURE, 0))
    return shown


def current_of(cluster: Cluster, vm: Vm) -> dict[str, Any]:
    """Return one VM as `status/current` shows it."""
    shown = brief(vm, full=True)
    shown.pop("template", None)
    shown |= {"ha": ha_power.shown(cluster, vm.vmid)}
    if ("agent" in vm.config and vm.config["agent"][:1] not in ("0", "e")) or (
        vm.config.get("agent", "").startswith("enabled=1")
    ):
        shown["agent"] = 1
    if "vga" in vm.config:
        shown["clipboard"] = None
    if vm.template:
        shown["template"] = 1
    if vm.running:
        shown |= _live(cluster, vm)
    return shown


def _live(cluster: Cluster, vm: Vm) -> dict[str, Any]:
    memory, qemu = memory_of(vm), cluster.version.qemu
    drives = [drive.name for drive in drives_of(vm.config)]
    cards = [name[3:] for name in vm.config if name.startswith("net")]
    machine = ".".join(qemu.split(".")[:2])
    nics = {f"tap{vm.vmid}i{card}": {"netin": 220, "netout": 656} for card in cards}
    return {
        "balloon": memory,
        "ballooninfo": {"actual": memory, "max_mem": memory},
        "blockstat": {name: _block(vm) for name in drives},
        **({"nics": nics} if nics else {}),
        "proxmox-support": _SUPPORT,
        "running-machine": f"pc-i440fx-{machine}+pve1",
        "running-qemu": qemu,
    }


def _block(vm: Vm) -> dict[str, Any]:
    return {
        **dict.fromkeys(_BLOCK_COUNTERS, 0),
        "account_failed": True,
        "account_invalid": True,
        "timed_stats": [],
    }


def listing(call: Call) -> list[dict[str, Any]]:
    """Return the VMs of a node that the caller may see."""
    access, full = call.cluster.access, call.flag("full")
    found = []
    for vm in call.cluster.vms.values():
        if vm.node == call.node and access.has(call.who, f"/vms/{vm.vmid}", "VM.Audit"):
            shown = brief(vm, full=full)
            if full and vm.running:
                shown |= _live(call.cluster, vm)
            found.append(shown)
    return found


def index(call: Call) -> list[dict[str, str]]:
    """Return the index below one VM."""
    call.vm()
    return [{"subdir": name} for name in _SUBDIRS]


def config(call: Call) -> dict[str, Any]:
    """Return the configuration; with pending values unless `current` is asked for."""
    vm = call.vm()
    if call.get("snapshot"):
        if call.get("snapshot") not in vm.snapshots:
            raise PveError(f"snapshot '{call.get('snapshot')}' does not exist")
        return {**typed(vm.snapshots[call.get("snapshot")].config), "digest": vm.digest()}
    merged = dict(vm.config)
    if not call.flag("current"):
        merged.update(vm.pending)
        for name in vm.pending_delete:
            merged.pop(name, None)
    if "cipassword" in merged:
        merged["cipassword"] = "**********"
    return {**typed(merged), "digest": vm.digest()}


def pending(call: Call) -> list[dict[str, Any]]:
    """Return each option with its current and pending value."""
    vm = call.vm()
    now, later = typed(vm.config), typed(vm.pending)
    shown: list[dict[str, Any]] = []
    for name in [*now, *(name for name in later if name not in now)]:
        entry: dict[str, Any] = {"key": name}
        if name in now:
            entry["value"] = now[name]
        if name in later:
            entry["pending"] = later[name]
        if name in vm.pending_delete:
            entry["delete"] = 2 if name in vm.pending_force else 1
        shown.append(entry)
    return [*shown, {"key": "digest", "value": vm.digest()}]


def current(call: Call) -> dict[str, Any]:
    """`status/current`."""
    return current_of(call.cluster, call.vm())


def status_index(call: Call) -> list[dict[str, str]]:
    """Return the index below `status`."""
    call.vm()
    names = ["current", "start", "stop", "reset", "shutdown", "suspend", "reboot"]
    return [{"subdir": name} for name in names]


def cloudinit(call: Call) -> list[dict[str, Any]]:
    """Return cloud-init options with their pending values."""
    vm = call.vm()
    wanted = ("ciuser", "cipassword", "sshkeys", "nameserver", "searchdomain", "citype")
    return [{"key": name, "value": vm.config[name]} for name in wanted if name in vm.config]


def regenerate_cloudinit(call: Call) -> None:
    """`PUT …/cloudinit`."""
    call.cluster.edit(call.vm())

"""Changes that a running VM can't take now: they wait for its next stop or start."""

from __future__ import annotations

import math

from simulator.errors import parameter_errors
from simulator.qemu import drives
from simulator.qemu.network import parse_net
from simulator.request.vmschema import is_drive
from simulator.state.cluster import Cluster
from simulator.state.model import ConfigMap, Vm
from simulator.state.volumes import owner_of, parse_volid

#: buses and devices that QEMU takes only at its start
COLD = ("ide", "sata", "efidisk", "tpmstate")
_NOT_APPLIED = "unable to apply pending change"


def apply_pending(cluster: Cluster, vm: Vm) -> None:
    """Apply pending changes to the configuration, as a stop and the next start do."""
    kept = [name for name in vm.pending_delete if not drop(cluster, vm, name)]
    vm.config.update(vm.pending)
    vm.pending, vm.pending_delete = {}, kept
    vm.pending_force = [name for name in vm.pending_force if name in kept]


def drop(cluster: Cluster, vm: Vm, name: str) -> bool:
    """Remove an option from the configuration; the volume of a disk becomes unused.

    Return whether it was removed: a disk that a snapshot names is not freed.
    """
    value = vm.config.get(name)
    if value is None or not is_drive(name):
        vm.config.pop(name, None)
        return True
    drive = drives.parse_drive(name, value)
    if name in vm.pending_force and drives.used(vm, name, drive.file):
        return False
    del vm.config[name]
    leave_boot_order(vm, name)
    if drive.storage and owner_of(parse_volid(drive.file).name) == vm.vmid:
        _release(cluster, vm, drive)
    return True


def _release(cluster: Cluster, vm: Vm, drive: drives.Drive) -> None:
    """Free the volume of a removed disk, or have it unused."""
    volume = cluster.volume(drive.file, vm.node)
    if volume is None:
        return
    if drive.cloudinit or drive.name in vm.pending_force:
        cluster.remove_volume(volume)
    else:
        add_unused(vm.config, drive.file)


def add_unused(config: ConfigMap, volid: str) -> None:
    """Add a volume to the configuration as an unused disk."""
    if volid in (text.partition(",")[0] for text in config.values()):
        return
    number = 0
    while f"unused{number}" in config:
        number += 1
    config[f"unused{number}"] = volid


def leave_boot_order(vm: Vm, name: str) -> None:
    """Remove a device from the boot order; an empty order is a space."""
    boot = vm.config.get("boot", "")
    if boot.startswith("order="):
        order = [one for one in boot[6:].split(";") if one and one != name]
        vm.config["boot"] = "order=" + ";".join(order) if order else " "


def unplug_problem(vm: Vm, name: str, *, silent: bool = False) -> str:
    """Return why a running VM doesn't release a device, or empty.

    A guest whose agent never answers has no system that could confirm the release.
    """
    boot = vm.config.get("boot", "").removeprefix("order=").split(";")
    if is_drive(name) and boot[0] == name:
        return f"can't unplug bootdisk '{name}'\n"
    if vm.agent_ready != math.inf and not silent:
        return ""
    device = f"virtio{name}" if name.startswith("scsi") else name
    return f"error on hot-unplugging device '{device}' - still busy in guest?\n"


def register(vm: Vm, name: str, force: bool) -> None:
    """Record that an option is to be removed at the next stop."""
    if name not in vm.pending_delete:
        vm.pending_delete.append(name)
    if force and name not in vm.pending_force:
        vm.pending_force.append(name)


def changes_card(vm: Vm, name: str, value: str) -> bool:
    """Return whether a change means unplugging the network card."""
    if name not in vm.config:
        return False
    old, new = parse_net(vm.config[name]), parse_net(value)
    return any(old.get(key) != new.get(key) for key in ("model", "macaddr", "link_down"))


def refuse(vm: Vm, problems: dict[str, str]) -> None:
    """Raise a 400 that names each option that could not be changed."""

    def problem(name: str, text: str) -> str:
        return f"hotplug problem - {text}" if vm.running else f"{_NOT_APPLIED} {name} : {text}"

    if problems:
        raise parameter_errors({name: problem(name, text) for name, text in problems.items()})

"""The local disks of a VM beside its root disk: made, grown, and (swap) replaced.

They bear the VM's own number, so that what removes the VM removes them. Each has a slot and a
serial number that nothing else gets; what has the slot with another serial number isn't touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.resources.local_disks import EPHEMERAL_SLOTS, SWAP_SLOT, LocalDisk
from compute.hypervisor.port import Detail
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.storage import volumes as storages
from compute.hypervisor.proxmox.vm import devices, host_checks
from compute.hypervisor.proxmox.vm.devices import Device
from compute.hypervisor.proxmox.vmconfig import disks, volumes

_NO_DISK = LocalDisk(SWAP_SLOT, 0)


def fit(
    vm: Vm,
    wanted: tuple[LocalDisk, ...],
    asked: str | None,
    bounds: Mapping[str, str] | None = None,
) -> Detail:
    """Make, grow and replace disks until the VM has those that are wanted.

    ``asked`` is the storage of new ones; None: where its disks are. ``bounds`` of new ones; None:
    those of its root disk. Raises HypervisorError.
    """
    config = vm.look() or {}
    for one in wanted:
        _require_own(vm, config, one)
    _remove_swap(vm, config, next((one for one in wanted if one.is_swap), _NO_DISK))
    _grow(vm, wanted)
    _make(vm, wanted, asked, bounds)
    return {one.serial: one.size_mib for one in wanted}


def _require_own(vm: Vm, config: Config, disk: LocalDisk) -> None:
    slot = disks.local_slot(disk)
    if slot in config and _own(vm, config, disk) is None:
        raise devices.refused(f"{vm} has something else in {slot}, the slot of {disk.serial}.")


def _own(vm: Vm, config: Config, disk: LocalDisk) -> str | None:
    """Return the value of the disk in a configuration; None: it has none that is ours."""
    value = str(config.get(disks.local_slot(disk), ""))
    mine = volumes.volid(value) in disks.volumes(config, vm.vmid)
    return value if mine and disks.serial(value) == disk.serial else None


def _remove_swap(vm: Vm, config: Config, wanted: LocalDisk) -> None:
    """Remove a swap disk that is larger than wanted, with its volume."""
    there = _own(vm, config, wanted)
    if there is None or 0 < disks.size_bytes(there) <= _rounded(wanted):
        return
    disk = volumes.volid(there)
    swap = Device(volumes.SCSI, lambda value: volumes.volid(value) == disk, "swap disk")
    try:
        devices.unplug(vm, swap, {"force": "1"})
    except ApiError as error:
        if error.in_use != disk:
            raise
        # The disk remains with the VM, as unused.
        vm.work.report(left=f"{disk}: a snapshot of {vm} names it")
        devices.unplug(vm, swap)


def _rounded(disk: LocalDisk) -> int:
    """Return the most bytes that a storage takes for a disk: it rounds to its own units."""
    return (disk.size_mib + 32 << 20) - 1 if disk.size_mib else 0


def _grow(vm: Vm, wanted: tuple[LocalDisk, ...]) -> None:
    config = vm.look() or {}
    for one in wanted:
        there = _own(vm, config, one)
        if there is not None and disks.size_bytes(there) < one.size_mib << 20:
            storage = there.partition(":")[0]
            storages.grow(vm, disks.local_slot(one), storage, one.size_mib)


def _make(
    vm: Vm, wanted: tuple[LocalDisk, ...], asked: str | None, bounds: Mapping[str, str] | None
) -> None:
    """Make all that it lacks with one call, bound to the configuration that was proven ours."""

    def lacks(config: Config) -> list[LocalDisk]:
        return [one for one in wanted if _own(vm, config, one) is None]

    if not lacks(vm.look() or {}):
        return
    storage = _storage(vm, vm.look() or {}, asked)

    def call() -> Any:
        config = vm.fence()
        for one in wanted:
            _require_own(vm, config, one)
        # A flavor bounds all of a server's own disks alike.
        limits = disks.limits_of(disks.root(config)) if bounds is None else bounds
        values = {
            disks.local_slot(one): disks.local(one, storage.name, storage.kind, limits)
            for one in lacks(config)
        }
        return vm.shared.client.post(f"{vm.path}/config", digest=config["digest"], **values)

    key = vm.shared.storage_key(vm.node, storage.name)
    with vm.shared.storage_queue.slot(vm.work, key, "local disks"):
        vm.converge(lambda: not lacks(vm.look() or {}), call, look_first=False)
    left = lacks(vm.look() or {})
    if left:
        raise devices.refused(f"{vm} has no disk {left[0].serial} after it was made.")


def _storage(vm: Vm, config: Config, asked: str | None) -> Storage:
    """Return where new disks go: beside those that it has, first beside its root disk."""
    own = disks.volumes(config, vm.vmid)
    slots = (disks.root_slot(config), *(f"scsi{slot}" for slot in (*EPHEMERAL_SLOTS, SWAP_SLOT)))
    there = (volumes.volid(config.get(slot)) for slot in slots)
    beside = next((disk.partition(":")[0] for disk in there if disk in own), None)
    return host_checks.storage(vm.shared, vm.node, beside or asked)

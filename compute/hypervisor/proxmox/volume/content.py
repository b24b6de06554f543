"""The call that makes a holder with its disk: empty, copied, cloned or restored."""

from __future__ import annotations

from typing import Any

from common.messages.commands import MakeVolume, VolumeSource
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.vmconfig import disks, hardware, marks, volumes
from compute.hypervisor.proxmox.vmconfig.marks import volume_mark

MEMORY_MIB = 16


def request(shared: Shared, vm: Vm, command: MakeVolume, storage: Storage) -> Any:
    """Send it; return its task."""
    source = command.source
    if source is not None and source.snapshot is not None:
        return _clone(shared, vm, command, source, storage)
    if source is not None and source.archive:
        return _restore(shared, vm, command, source, storage)
    if source is None:
        disk = disks.blank(storage.name, storage.kind, command.size_gib)
    else:
        disk = disks.imported(storage.name, storage.kind, source.volid)
    values = {
        **marks_of(vm),
        "vmid": vm.vmid,
        "name": _name(command),
        "tags": hardware.TAG,
        "ostype": "l26",
        "cores": 1,
        "memory": MEMORY_MIB,
        "scsihw": "virtio-scsi-single",
        volumes.PLUGGED: disk,
    }
    return shared.client.post(f"nodes/{vm.node}/qemu", **values)


def marks_of(vm: Vm) -> dict[str, Any]:
    """Return what proves the holder."""
    uuid = vm.work.command.resource_id
    return {"description": vm.mark.description(), "smbios1": f"uuid={uuid}"}


def _name(command: MakeVolume) -> str:
    return f"volume-{command.resource_id[:8]}"


def _clone(
    shared: Shared, vm: Vm, command: MakeVolume, source: VolumeSource, storage: Storage
) -> Any:
    """Copy the snapshot of another holder, proven the source's."""
    there = holder_of(vm, command, source)
    there.fence()
    values = {
        "newid": vm.vmid,
        "name": _name(command),
        "description": vm.mark.description(marks.BUILDING),
        "snapname": source.snapshot,
        "storage": storage.name,
        "full": 1,
        **disks.form_of_copy(storage.kind),
    }
    with there.locks_explained():
        return shared.client.post(f"{there.path}/clone", **values)


def holder_of(vm: Vm, command: MakeVolume, source: VolumeSource) -> Vm:
    """Return the VM whose snapshot is copied."""
    mark = volume_mark(source.volume_id, command.cloud)
    return Vm(vm.shared, vm.work, source.vmid, vm.node, mark)


def _restore(
    shared: Shared, vm: Vm, command: MakeVolume, source: VolumeSource, storage: Storage
) -> Any:
    """Restore an archive; what is set here takes the place of what was saved."""
    values = {
        "vmid": vm.vmid,
        "archive": source.volid,
        "storage": storage.name,
        "unique": 1,
        "name": _name(command),
        "description": vm.mark.description(marks.BUILDING),
    }
    return shared.client.post(f"nodes/{vm.node}/qemu", **values)

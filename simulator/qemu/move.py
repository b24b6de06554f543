"""`POST …/move_disk`: move a disk to another storage, or reassign it to another VM."""

from __future__ import annotations

from simulator.engine import Release, Sleep, Work
from simulator.errors import PveError, parameter_errors
from simulator.qemu import config_lock, pending, permits
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, parse_drive, stored_drive, used
from simulator.request.call import Call
from simulator.request.vmschema import is_drive
from simulator.state import disks
from simulator.state.cluster import Cluster
from simulator.state.model import Vm, Volume
from simulator.state.tasks import Job
from simulator.state.volumes import parse_volid

_NO_TARGET = "both 'storage' and 'target-vmid' missing, either needs to be set"
_BOTH = "either set 'storage' or 'target-vmid', but not both"


def move(call: Call) -> str:
    """Copy a disk to another storage, or reassign it to another VM of the same node."""
    if call.get("target-vmid"):
        return _reassign(call)
    if not call.get("storage"):
        raise parameter_errors({"storage": _NO_TARGET, "target-vmid": _NO_TARGET})
    storage = call.cluster.enabled_storage(call.get("storage"), call.node)
    path = f"/storage/{storage.id}"
    call.cluster.access.require(call.who, path, "Datastore.AllocateSpace")
    if "images" not in storage.content:
        raise parameter_errors({"storage": f"storage '{storage.id}' does not support vm images"})
    _movable(call)
    return call.start("qmmove", call.vmid, lambda job: _copy(call, job))


def _movable(call: Call) -> tuple[Vm, Drive]:
    vm, name = call.vm(), call.get("disk")
    check_lock(vm)
    if call.get("digest") not in ("", vm.digest()):
        raise PveError("checksum mismatch (file change by other user?)")
    drive = stored_drive(vm.config, name)
    if drive.cdrom:
        raise PveError("you can't move a cdrom")
    present = disks.default_format(parse_volid(drive.file).name)
    if drive.storage == call.get("storage") and call.get("format", present) == present:
        raise PveError("you can't move to the same storage with same format")
    if call.flag("delete") and used(vm, name, drive.file):
        raise PveError("you can't move a disk with snapshots and delete the source")
    return vm, drive


def _copy(call: Call, job: Job) -> Work:
    cluster = call.cluster
    lock = yield from config_lock.take(call, job)
    vm, drive = _movable(call)
    source = cluster.volume(drive.file, call.node)
    job.log(
        f"copying volume '{drive.file}' from current storage '{drive.storage}' to target "
        f"storage '{call.get('storage')}'"
    )
    if used(vm, drive.name, drive.file):
        job.log("moving disk with snapshots, snapshots will not be moved!")
    job.log(f"create full clone of drive {drive.name} ({drive.file})")
    try:
        if source is None:
            raise PveError(f"volume '{drive.file}' does not exist")
        made = yield from _copied(call, job, vm, drive, source)
    except PveError as error:
        raise PveError(f"storage migration failed: {error.text}") from error
    cluster.edit(vm)
    if is_drive(drive.name):
        options = {**drive.options, "size": disks.print_size(made.size)}
        vm.config[drive.name] = Drive(drive.name, made.volid, options).text()
    else:
        vm.config[drive.name] = made.volid
    yield from _leave(call, job, vm, drive.file)
    yield Release(lock)


def _copied(call: Call, job: Job, vm: Vm, drive: Drive, source: Volume) -> Work:
    cluster, node, storage = call.cluster, call.node, call.get("storage")
    image_format = call.get("format") or disks.default_format(source.name)
    made = yield from disks.allocate(
        cluster, job, node, storage, vm.vmid, image_format, source.size
    )
    job.log(f"allocated target volume '{made.volid}'")
    try:
        if vm.running and is_drive(drive.name):
            yield from _mirror(cluster, job, drive.name, source, made)
        else:
            yield from disks.copy(cluster, job, node, source, made)
    except PveError:
        cluster.remove_volume(made)
        raise
    return made


def _mirror(cluster: Cluster, job: Job, name: str, source: Volume, made: Volume) -> Work:
    """Copy a disk that a running VM uses, then switch to the copy, as QEMU's mirror does."""
    job.log(f"drive mirror is starting for drive-{name}")
    yield Sleep(source.size / disks.COPY_BYTES_PER_SECOND)
    total = disks.human(source.size)
    job.log(f"mirror-{name}: transferred {total} of {total} (100.00%) in 0s, ready")
    for line in (
        "all 'mirror' jobs are ready",
        f"mirror-{name}: Completing block job...",
        f"mirror-{name}: Completed successfully.",
        f"mirror-{name}: mirror-job finished",
    ):
        job.log(line)
    made.data = source.data
    disks.resize(cluster, made, used=max(source.used, made.used))


def _leave(call: Call, job: Job, vm: Vm, volid: str) -> Work:
    """Delete the copied volume, or keep it as unused."""
    if call.flag("delete"):
        job.log(f"removing source volume '{volid}' after successful copy")
        yield from disks.free(call.cluster, call.node, volid)
        return
    before = set(vm.config)
    pending.add_unused(vm.config, volid)
    for name in sorted(set(vm.config) - before):
        job.log(f"adding source volume '{volid}' as '{name}' to config")


# --- another VM


def _reassign(call: Call) -> str:
    target, name = int(call.get("target-vmid")), call.get("disk")
    if call.get("storage"):
        raise parameter_errors({"storage": _BOTH, "target-vmid": _BOTH})
    call.cluster.access.require(call.who, f"/vms/{target}", "VM.Config.Disk")
    if target == call.vmid:
        raise parameter_errors(
            {"target-vmid": "must be different than source VMID to reassign disk"}
        )
    slot = call.get("target-disk") or name
    _reassignable(call, target, slot)
    subject = f"{call.vmid}-{name}>{target}-{slot}"
    return call.start("qmmove", subject, lambda job: _give(call, job, target, slot))


def _reassignable(call: Call, vmid: int, slot: str) -> tuple[Vm, Vm, Drive]:
    cluster, name = call.cluster, call.get("disk")
    target = cluster.vms.get(vmid)
    if target is None:
        raise PveError(f"could not find target VM {vmid}")
    source = call.vm()
    if target.node != source.node:
        raise PveError(
            f"Both VMs need to be on the same node ({source.node}) but target VM is on "
            f"{target.node}."
        )
    for one in (source, target):
        check_lock(one)
        if one.template:
            raise PveError("Can't move disks from or to template VMs")
    if name not in source.config:
        raise PveError(f"Disk '{name}' for VM '{source.vmid}' does not exist")
    if slot in target.config:
        raise PveError(f"Target disk key '{slot}' is already in use for VM '{vmid}'")
    drive = parse_drive(name, source.config[name])
    if drive.cdrom:
        raise PveError("CD drive contents can't be moved to another VM")
    if used(source, name, drive.file):
        raise PveError("Can't move disk used by a snapshot to another VM")
    if source.running and is_drive(name):
        raise PveError(
            "Cannot move disk to another VM while the source VM is running - detach first"
        )
    permits.drive(cluster, call.who, source.vmid, None, drive)
    return source, target, drive


def _give(call: Call, job: Job, vmid: int, slot: str) -> Work:
    cluster, node = call.cluster, call.node
    locks = []
    for one in sorted((call.vmid, vmid)):
        locks.append((yield from config_lock.take(call, job, one)))
    source, target, drive = _reassignable(call, vmid, slot)
    job.log(
        f"reassign disk '{drive.name}' from VM '{source.vmid}' as '{slot}' to VM '{target.vmid}'"
    )
    volume = cluster.volume(drive.file, node)
    if volume is None:
        raise PveError(f"volume '{drive.file}' does not exist")
    renamed = _renamed(cluster, volume, vmid)
    job.log(f"removing disk '{drive.name}' from VM '{source.vmid}' config")
    cluster.edit(source).config.pop(drive.name)
    pending.leave_boot_order(source, drive.name)
    drive.file = renamed.volid
    text = drive.text() if is_drive(slot) else drive.file
    job.log(f"update VM {vmid}: -{slot} {text}")
    cluster.edit(target).config[slot] = text
    for lock in locks:
        yield Release(lock)


def _renamed(cluster: Cluster, volume: Volume, vmid: int) -> Volume:
    """Rename a volume after the VM that owns it."""
    storage = cluster.storage(volume.storage)
    cluster.remove_volume(volume)
    volume.name = cluster.volumes.free_name(storage, volume.node, vmid, volume.format)
    volume.vmid = vmid
    return cluster.add_volume(volume)

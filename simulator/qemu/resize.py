"""`PUT …/resize`, `POST …/template` and `GET …/feature`."""

from __future__ import annotations

from typing import Any

from simulator.engine import Release, Sleep, Work
from simulator.errors import PveError
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import drives_of, stored_drive
from simulator.request.call import Call
from simulator.state import disks
from simulator.state.cluster import Cluster
from simulator.state.model import Vm, Volume
from simulator.state.storage_kinds import BASE, CURRENT, QCOW2, SNAP, kind
from simulator.state.tasks import Job
from simulator.state.volumes import path_of


def resize(call: Call) -> str:
    """Grow a disk; all errors appear in the task."""
    skip = call.skiplock()

    def body(job: Job) -> Work:
        lock = yield from call.cluster.lock_vm(call.node, call.vmid)
        yield from _resize(call, job, skip)
        yield Release(lock)

    return call.start("resize", call.vmid, body)


def _resize(call: Call, job: Job, skip: bool) -> Work:
    cluster, vm, name = call.cluster, call.vm(), call.get("disk")
    if call.get("digest") and call.get("digest") != vm.digest():
        raise PveError("checksum mismatch (file change by other user?)")
    check_lock(vm, skip=skip)
    drive = stored_drive(vm.config, name)
    if drive.cdrom:
        raise PveError("you can't resize a cdrom")
    cluster.access.require(call.who, f"/storage/{drive.storage}", "Datastore.AllocateSpace")
    volume = cluster.volume(drive.file, call.node)
    if volume is None:
        raise PveError(f"Could not determine current size of volume '{drive.file}'")
    text = call.get("size")
    size = disks.parse_size(text.lstrip("+")) + (volume.size if text.startswith("+") else 0)
    if size < volume.size:
        raise PveError("shrinking disks is not supported")
    if size == volume.size:
        return
    path = path_of(cluster.storage(volume.storage), volume.name)
    if volume.base:
        refused = f"Could not open '{path}': "
        job.log(f"qemu-img: {refused}{refused}Operation not permitted")
        raise PveError(
            "command '/usr/bin/qemu-img resize '--preallocation=metadata' "
            f"-f {volume.format} {path} {size}' failed: exit code 1"
        )
    cluster.edit(vm)
    lock = yield from cluster.lock_storage(drive.storage, call.node)
    yield from cluster.storage_work(drive.storage, call.node, lock, disks.FREE_SECONDS)
    more = _require_room(cluster, job, vm, volume, size)
    disks.resize(cluster, volume, size=size, used=volume.used + more)
    said = volume.format == QCOW2 or kind(cluster.storage(volume.storage)).files
    if said and not vm.running:
        job.log("Image resized.")
    drive.options["size"] = disks.print_size(size)
    cluster.edit(vm).config[name] = drive.text()


def _require_room(cluster: Cluster, job: Job, vm: Vm, volume: Volume, size: int) -> int:
    """Return what a volume takes of its storage to grow, or raise PveError.

    A running VM's QEMU grows its file by itself, and writes nothing.
    """
    storage = cluster.storage(volume.storage)
    one = kind(storage)
    if not one.thin:
        # All of it at once.
        needed = one.size(size) - volume.size
    elif one.files and (vm.running or volume.format != QCOW2):
        return 0
    else:
        needed = disks.EMPTY_QCOW2
    disks.require_more(
        cluster, job, vm.node, volume, one.texts.full_resize, needed, size=str(size)
    )
    return 0 if one.thin else needed


def template(call: Call) -> Work:
    """Turn a VM into a template: its disks become base volumes."""
    lock = yield from call.cluster.lock_vm(call.node, call.vmid)
    vm = call.vm()
    check_lock(vm)
    if vm.snapshots:
        raise PveError("unable to create template, because VM contains snapshots")
    if vm.template and not call.get("disk"):
        raise PveError("you can't convert a template to a template")
    if vm.running:
        raise PveError("you can't convert a VM to template if VM is running")
    call.cluster.edit(vm).config["template"] = "1"
    yield Release(lock)
    return call.start("qmtemplate", call.vmid, lambda job: _template(call, job))


def _template(call: Call, job: Job) -> Work:
    cluster = call.cluster
    lock = yield from cluster.lock_vm(call.node, call.vmid)
    vm = call.vm()
    for drive in drives_of(vm.config):
        volume = cluster.volume(drive.file, call.node) if drive.storage else None
        if volume is None or drive.cdrom or not _becomes_base(cluster, volume):
            continue
        held = yield from cluster.lock_storage(volume.storage, call.node)
        drive.file = _make_base(call, volume).volid
        cluster.edit(vm).config[drive.name] = drive.text()
        yield from cluster.storage_work(volume.storage, call.node, held, disks.FREE_SECONDS)
    yield Sleep(0.05)
    yield Release(lock)


def _becomes_base(cluster: Cluster, volume: Volume) -> bool:
    """Return whether a volume becomes a base when its VM becomes a template.

    The disk of another template is left as it is.
    """
    of = BASE if volume.base else CURRENT
    return kind(cluster.storage(volume.storage)).has("template", of, volume.format)


def _make_base(call: Call, volume: Volume) -> Volume:
    call.cluster.remove_volume(volume)
    folder, slash, own = volume.name.rpartition("/")
    volume.name = f"{folder}{slash}{own.replace('vm-', 'base-', 1)}"
    return call.cluster.add_volume(volume)


def feature(call: Call) -> dict[str, Any]:
    """Return whether all disks support snapshots, clones or copies."""
    vm, wanted, name = call.vm(), call.get("feature"), call.get("snapname")
    if name and name not in vm.snapshots:
        raise PveError(f"snapshot '{name}' does not exist")
    config = vm.snapshots[name].config if name else vm.config
    able = all(
        able_to(call.cluster, vm, wanted, drive.file, snap=bool(name))
        for drive in drives_of(config)
        if drive.storage and not drive.cdrom
    )
    nodes = sorted(call.cluster.nodes) if _all_shared(call, vm) else [call.node]
    return {"hasFeature": int(able), "nodes": nodes}


def able_to(cluster: Cluster, vm: Vm, wanted: str, volid: str, *, snap: bool = False) -> bool:
    """Return whether a VM's volume, or a snapshot of it, has a feature."""
    volume = cluster.volume(volid, vm.node)
    if volume is None:
        return False
    of = SNAP if snap else (BASE if volume.base else CURRENT)
    able = kind(cluster.storage(volume.storage)).has(wanted, of, volume.format)
    return able and not (wanted == "snapshot" and vm.template)


def _all_shared(call: Call, vm: Vm) -> bool:
    return all(
        call.cluster.storage(drive.storage).shared
        for drive in drives_of(vm.config)
        if drive.storage
    )

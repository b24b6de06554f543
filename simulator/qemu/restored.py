"""`POST /nodes/{node}/qemu` with an archive: create a VM from a backup, or replace one."""

from __future__ import annotations

import time
import uuid

from simulator.engine import Release, Sleep, Work
from simulator.errors import PveError
from simulator.propstring import join, split
from simulator.qemu import archives, config_lock, network, power
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, drives_of
from simulator.request.call import Call
from simulator.state import disks
from simulator.state.model import ConfigMap, Vm, Volume
from simulator.state.tasks import Job
from simulator.state.volumes import owner_of, parse_volid, path_of

_READ_SECONDS = 0.5
_LOST = (
    "error before or during data restore, some or all disks were not completely restored. VM {} "
    "state is NOT cleaned up."
)


def restore(call: Call, changes: ConfigMap) -> str:
    """Start the worker that restores; `changes` are the options set beside the archive."""
    cluster, vmid = call.cluster, call.vmid
    _may(call)
    cluster.check_quorum()
    archive = archives.archive(call, call.get("archive"))
    present = cluster.vms.get(vmid)
    emsg = f"unable to restore VM {vmid} -"
    if present is not None:
        if not call.flag("force") or present.node != call.node:
            raise PveError(f"{emsg} VM {vmid} already exists on node '{present.node}'")
        if present.config.get("protection") == "1":
            raise PveError(f"{emsg} VM is protected")
    else:
        cluster.add_vm(Vm(vmid, call.node, {"lock": "create"}))
    return call.start("qmrestore", vmid, lambda job: _worker(call, job, archive, changes))


def _may(call: Call) -> None:
    access, vmid, pool = call.cluster.access, call.vmid, call.get("pool")
    path = f"/vms/{vmid}"
    if access.has(call.who, path, "VM.Allocate"):
        return
    if pool and access.has(call.who, f"/pool/{pool}", "VM.Allocate"):
        return
    again = call.flag("force") and vmid in call.cluster.vms
    if not (again and access.has(call.who, path, "VM.Backup")):
        raise PveError("Permission check failed", 403)


def _worker(call: Call, job: Job, archive: Volume, changes: ConfigMap) -> Work:
    cluster, vmid = call.cluster, call.vmid
    lock = yield from config_lock.take(call, job)
    vm = call.vm()
    fresh = vm.lock == "create"
    try:
        if vm.running:
            raise PveError(f"unable to restore VM {vmid} - vm is running")
        check_lock(vm, skip=fresh)
        yield from _read(call, job, vm, archive, changes)
    except PveError:
        if fresh and cluster.vms.get(vmid) is vm:
            # Only the lock is removed: an empty configuration is left.
            cluster.edit(vm).config.pop("lock", None)
        job.log(_LOST.format(vmid))
        raise
    yield Release(lock)
    if call.get("pool"):
        cluster.set_pool(vmid, call.get("pool"))
    if call.flag("start"):
        power.launch(call, vmid)


def _read(call: Call, job: Job, vm: Vm, archive: Volume, changes: ConfigMap) -> Work:
    cluster = call.cluster
    config, names = archives.saved(call, archive)
    command = _command(call, job, archive)
    job.log(f"restore vma archive: {command}")
    job.log(f"CFG: size: {len(archives.saved_text(call, archive))} name: qemu-server.conf")
    kept = [one for one in drives_of(config) if one.name in names]
    for number, drive in enumerate(kept, 1):
        size = disks.parse_size(drive.options.get("size", "0"))
        job.log(f"DEV: dev_id={number} size: {size} devname: drive-{drive.name}")
    made_at = time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(archive.ctime))
    job.log(f"CTIME: {made_at}")
    yield Sleep(_READ_SECONDS)
    # The VM's present disks go first: the restored ones have the same names.
    yield from _remove_disks(call, vm, names)
    made: list[Volume] = []
    try:
        for drive in kept:
            config[drive.name] = yield from _disk(call, job, drive, archive, made)
    except PveError:
        for one in made:
            yield from disks.free(cluster, call.node, one.volid)
            job.log(f"temporary volume '{one.volid}' successfully removed")
        raise
    _comment_out(config)
    if call.flag("unique"):
        _make_unique(call, config)
    cluster.edit(vm).config = {**config, **changes}
    vm.pending, vm.pending_delete, vm.snapshots = {}, [], {}


def _command(call: Call, job: Job, archive: Volume) -> str:
    stamp = f"/var/tmp/vzdumptmp{job.task.pid}"  # noqa: S108 - the log names it
    path = path_of(call.cluster.storage(archive.storage), archive.name)
    return f"zstd -q -d -c {path} | vma extract -v -r {stamp}.fifo - {stamp}"


def _remove_disks(call: Call, vm: Vm, names: set[str]) -> Work:
    for drive in drives_of(vm.config, unused=True):
        owned = drive.storage and owner_of(parse_volid(drive.file).name) == vm.vmid
        if owned and (drive.name in names or not drive.cdrom):
            yield from disks.free(call.cluster, call.node, drive.file)


def _disk(call: Call, job: Job, drive: Drive, archive: Volume, made: list[Volume]) -> Work:
    cluster = call.cluster
    storage = call.get("storage") or drive.storage
    kind = disks.default_format(parse_volid(drive.file).name)
    size = disks.parse_size(drive.options.get("size", "0"))
    volume = yield from disks.allocate(cluster, job, call.node, storage, call.vmid, kind, size)
    made.append(volume)
    job.log(f"new volume ID is '{volume.volid}'")
    path = path_of(cluster.storage(storage), volume.name)
    job.log(f"map 'drive-{drive.name}' to '{path}' (write zeros = 0)")
    for percent in (1, 50, 100):
        yield Sleep(size / disks.COPY_BYTES_PER_SECOND / 3)
        done = size * percent // 100
        job.log(f"progress {percent}% (read {done} bytes, duration 0 sec)")
    more = max(archive.size, volume.used) - volume.used
    found = cluster.storage(storage)
    if cluster.used(found, call.node) + more > found.capacity:
        # Of pve-qemu's vma.c: the number is all that it says.
        job.log(
            f"** (process:{job.task.pid}): ERROR: restore failed - blk_pwrite to  failed (-28)"
        )
        command = _command(call, job, archive)
        raise PveError(f"command 'set -o pipefail && {command}' failed: exit code 133")
    volume.data = archive.kept.get(drive.name, "")
    disks.resize(cluster, volume, used=volume.used + more)
    drive.file = volume.volid
    return drive.text()


def _comment_out(config: ConfigMap) -> None:
    """Have drives that are left out of backups (`backup=0`) be comments, as which they return.

    Comments of a configuration file are its description.
    """
    left = [one for one in drives_of(config) if one.options.get("backup") == "0"]
    lines = [f"{one.name}: {config.pop(one.name)}" for one in left]
    described = [config["description"]] if config.get("description") else []
    if lines:
        config["description"] = "\n".join([*described, *lines])


def _make_unique(call: Call, config: ConfigMap) -> None:
    prefix = call.cluster.options["mac_prefix"]
    for name in [key for key in config if key.startswith("net")]:
        card = network.parse_net(config[name])
        card["macaddr"] = network.random_mac(prefix)
        config[name] = network.print_net(card)
    rest = split(config.get("smbios1", ""), "uuid")
    rest.pop("uuid", None)
    config["smbios1"] = join(f"uuid={uuid.uuid4()}", rest)
    if "vmgenid" in config:
        config["vmgenid"] = str(uuid.uuid4())

"""`POST …/vzdump`: back up virtual machines, one after the other, under `lock: backup`.

A node makes one backup at a time. A killed worker leaves the lock in the configuration, and a VM
that was stopped before the backup still running, as on a real server.
"""

from __future__ import annotations

import shlex
import time
import uuid
from dataclasses import dataclass

from simulator.digits import is_digits
from simulator.engine import Acquire, Release, Sleep, Work
from simulator.errors import Interrupted, PveError
from simulator.qemu import archives, config_lock, power
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, drives_of
from simulator.request.call import Call
from simulator.state.disks import COPY_BYTES_PER_SECOND, human, print_size
from simulator.state.model import Storage, Vm, Volume
from simulator.state.tasks import Job

NODE_LOCK = "/var/run/vzdump.lock"
NODE_LOCK_WAIT = 3 * 3600.0
SETUP_SECONDS = 1.0
_SUFFIX = {"0": "", "1": ".lzo", "lzo": ".lzo", "gzip": ".gz", "zstd": ".zst"}


@dataclass
class _Backup:
    """One VM's backup in progress."""

    call: Call
    job: Job
    vm: Vm
    storage: Storage
    mode: str
    drives: list[Drive]

    def info(self, text: str) -> None:
        """Write one line to the log."""
        self.job.log(f"INFO: {text}")


def dump(call: Call) -> str:
    """Start the job; the worker finds what prevents it."""
    storage = call.get("storage") or "local"
    path = f"/storage/{storage}"
    call.cluster.access.require(call.who, path, "Datastore.AllocateSpace")
    vmids = _wanted(call)
    subject = str(vmids[0]) if len(vmids) == 1 else ""
    return call.start("vzdump", subject, lambda job: _worker(call, job, storage, vmids))


def _wanted(call: Call) -> list[int]:
    if call.flag("all"):
        excluded = set(call.get("exclude").split(","))
        here = (vm.vmid for vm in call.cluster.vms.values() if vm.node == call.node)
        return sorted(vmid for vmid in here if str(vmid) not in excluded)
    if call.get("pool"):
        pool = call.cluster.pools.get(call.get("pool"))
        return sorted(pool.vms) if pool is not None else []
    return [int(one) for one in call.get("vmid").replace(";", ",").split(",") if is_digits(one)]


def _worker(call: Call, job: Job, name: str, vmids: list[int]) -> Work:
    storage = _usable(call, name)
    given = {**call.params, "node": call.node}
    options = " ".join(
        f"--{key} {shlex.quote(given[key])}" for key in sorted(given) if key != "vmid"
    )
    named = " ".join([*(str(one) for one in vmids if call.get("vmid")), options])
    job.log(f"INFO: starting new backup job: vzdump {named}")
    lock = call.cluster.lock(f"{call.node}:{NODE_LOCK}")
    if not lock.free_for(False):
        job.log("INFO: trying to get global lock - waiting...")
    if not (yield Acquire(lock, NODE_LOCK_WAIT)):
        raise PveError(f"can't acquire lock '{NODE_LOCK}' - got timeout")
    failed = False
    for vmid in vmids:
        call.cluster.access.require(call.who, f"/vms/{vmid}", "VM.Backup")
        done = yield from _one(call, job, storage, vmid)
        failed = failed or not done
    yield Release(lock)
    if failed:
        job.log("INFO: Backup job finished with errors")
        raise PveError("job errors")
    job.log("INFO: Backup job finished successfully")


def _usable(call: Call, name: str) -> Storage:
    refused = f"could not get storage information for '{name}': "
    try:
        storage = call.cluster.enabled_storage(name, call.node)
    except PveError as error:
        raise PveError(
            f"could not activate storage '{name}': {error.text}\n{refused}{error.text}"
        ) from error
    if "backup" not in storage.content:
        raise PveError(f"{refused}can't use storage '{name}' for backups - wrong content type")
    return storage


def _one(call: Call, job: Job, storage: Storage, vmid: int) -> Work:
    """Back up one VM; return whether that succeeded."""
    vm = call.cluster.vms.get(vmid)
    if vm is not None and vm.node != call.node:
        job.log(f"INFO: skip external VMs: {vmid}")
        return True
    began = time.monotonic()
    try:
        if vm is None:
            raise PveError(f"unable to find VM '{vmid}'")
        job.log(f"INFO: Starting Backup of VM {vmid} (qemu)")
        job.log(f"INFO: Backup started at {_clock()}")
        yield from _locked(call, job, vm, storage)
    except PveError as error:
        text = "interrupted by signal" if isinstance(error, Interrupted) else error.text
        job.log(f"ERROR: Backup of VM {vmid} failed - {text}")
        job.log(f"INFO: Failed at {_clock()}")
        return False
    seconds = int(time.monotonic() - began)
    spent = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    job.log(f"INFO: Finished Backup of VM {vmid} ({spent})")
    job.log(f"INFO: Backup finished at {_clock()}")
    return True


def _clock() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())


def _locked(call: Call, job: Job, vm: Vm, storage: Storage) -> Work:
    """Back up under `lock: backup`, which is removed on success and on failure."""
    cluster = call.cluster
    job.log(f"INFO: status = {vm.status}")
    lock = yield from config_lock.take(call, job, vm.vmid)
    check_lock(vm)
    cluster.edit(vm).config["lock"] = "backup"
    yield Release(lock)
    mode = call.get("mode", "snapshot") if vm.running else "stop"
    drives = [
        one
        for one in drives_of(vm.config)
        if one.storage and not one.cdrom and one.options.get("backup") != "0"
    ]
    backup = _Backup(call, job, vm, storage, mode, drives)
    try:
        yield from _archive(backup)
    except PveError:
        _unlock(backup)
        raise
    _unlock(backup)


def _unlock(backup: _Backup) -> None:
    vm, cluster = backup.vm, backup.call.cluster
    if cluster.vms.get(vm.vmid) is vm and vm.lock == "backup":
        cluster.edit(vm).config.pop("lock")


def _archive(backup: _Backup) -> Work:
    _announce(backup)
    vm, cluster = backup.vm, backup.call.cluster
    began = not vm.running
    if backup.mode == "suspend":
        backup.info("suspending guest")
        cluster.touch(vm).qmp = "paused"
    elif backup.mode == "stop" and not began:
        backup.info("stopping virtual guest")
        yield Sleep(power.GUEST_SHUTDOWN_SECONDS)
        power.mark_stopped(cluster, vm)
    name = _free_name(backup)
    path = archives.path_of_archive(backup.storage, name)
    backup.info(f"creating vzdump archive '{path}'")
    if not vm.running:
        backup.info("starting kvm to execute backup task")
        yield Sleep(power.START_SECONDS)
        power.mark_running(cluster, vm)
        vm.qmp = "prelaunch"
    try:
        volume = yield from _transfer(backup, name, began)
    except PveError:
        if began and vm.running:
            power.end_process(cluster, vm)
        elif vm.running:
            cluster.touch(vm).qmp = "running"
        raise
    if began:
        backup.info("stopping kvm after backup task")
        power.end_process(cluster, vm)
    backup.info(f"archive file size: {volume.size >> 10}KB")
    if backup.mode == "suspend":
        backup.info("resume vm")
    _note(backup, volume)


def _free_name(backup: _Backup) -> str:
    """Return the archive's name; a simulated backup may take less than the second in it."""
    suffix, now = _SUFFIX[backup.call.get("compress", "0")], time.time()
    place = backup.call.cluster.place(backup.storage.id, backup.call.node)
    while True:
        name = archives.archive_name(backup.vm.vmid, time.gmtime(now), suffix)
        if backup.call.cluster.volumes.get(place, name) is None:
            return name
        now += 1


def _announce(backup: _Backup) -> None:
    """Log what will be saved and how; a live backup begins with what, the others with how."""
    how = [f"backup mode: {backup.mode}", "ionice priority: 7"]
    what = [f"VM Name: {backup.vm.config.get('name', f'VM {backup.vm.vmid}')}"]
    for drive in backup.drives:
        volume = backup.call.cluster.volume(drive.file, backup.call.node)
        if volume is None:
            raise PveError(f"volume '{drive.file}' does not exist")
        size = drive.options.get("size") or print_size(volume.size)
        what.append(f"include disk '{drive.name}' '{drive.file}' {size}")
    for line in [*what, *how] if backup.mode == "snapshot" else [*how, *what]:
        backup.info(line)


def _transfer(backup: _Backup, name: str, began: bool) -> Work:
    vm, call = backup.vm, backup.call
    total, used = 0, 0
    for drive in backup.drives:
        volume = call.cluster.volume(drive.file, call.node)
        if volume is not None:
            total, used = total + volume.size, used + volume.used
    backup.info("starting backup via QMP command")
    backup.info(f"started backup task '{uuid.uuid4()}'")
    yield Sleep(SETUP_SECONDS)
    if not began:
        after = "" if backup.mode == "snapshot" else " after 1 seconds"
        backup.info(f"resuming VM again{after}")
        if vm.running:
            call.cluster.touch(vm).qmp = "running"
    yield Sleep(total / COPY_BYTES_PER_SECOND)
    shown = human(total)
    backup.info(f"100% ({shown} of {shown}) in 0s, read: {shown}/s, write: {human(used)}/s")
    sparse = total - min(used, total)
    share = 100 * sparse // total if total else 0
    backup.info(f"backup is sparse: {human(sparse)} ({share}%) total zero data")
    backup.info(f"transferred {shown} in <1 seconds")
    if not archives.has_room(call, backup.storage, used):
        raise _no_room(backup)
    return archives.keep(call, vm, backup.storage, name, backup.drives, used)


def _no_room(backup: _Backup) -> PveError:
    """Return the error of an archive that can't be written to its end.

    What compresses it says so and ends; QEMU only sees that its pipe is broken.
    """
    cause = "No space left on device"
    if _SUFFIX[backup.call.get("compress", "0")]:
        backup.job.log(f"zstd: error 70 : Write error : cannot write block : {cause} ")
        cause = "Broken pipe"
    text = f"vma_queue_write: write error - {cause}"
    backup.job.log(f"ERROR: {text}")
    backup.info("aborting backup job")
    return PveError(text)


def _note(backup: _Backup, volume: Volume) -> None:
    call = backup.call
    volume.protected = call.flag("protected")
    template = call.get("notes-template")
    if template:
        backup.info("adding notes to backup")
        values = {
            "guestname": backup.vm.config.get("name", f"VM {backup.vm.vmid}"),
            "vmid": str(backup.vm.vmid),
            "node": call.node,
            "cluster": call.cluster.name,
        }
        for key, value in values.items():
            template = template.replace("{{" + key + "}}", value)
        volume.notes = template
    call.cluster.add_volume(volume)

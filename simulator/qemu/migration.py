"""The worker that moves a VM to another node, with the log of a real one.

It holds the VM's lock and `lock: migrate` from beginning to end. A failure before the switch
leaves the VM where it was and removes the copies; SIGTERM is only noted, and SIGKILL five seconds
later cleans nothing up.
"""

from __future__ import annotations

import functools
import time

from simulator.engine import Release, Sleep, Work
from simulator.errors import Interrupted, PveError, WorkerKilled
from simulator.qemu import config_lock, migration_disks
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, drives_of
from simulator.qemu.migration_disks import Moved
from simulator.qemu.status import memory_of
from simulator.request.call import Call
from simulator.state import disks
from simulator.state.cluster import Cluster
from simulator.state.model import Migration, Vm
from simulator.state.tasks import Job

SETUP_SECONDS = 1.0
MEMORY_BYTES_PER_SECOND = 500_000_000
KILL_AFTER_SECONDS = 5.0
#: what a guest has that is not all zeros: an idle one transfers little
_LOOKS = 8


class Log:
    """A log with a time stamp on every line."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        self.job.log(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} {text}")

    @property
    def duration(self) -> str:
        """The time since its beginning."""
        seconds = int(time.monotonic() - self._began)
        return f"(duration 00:{seconds // 60:02}:{seconds % 60:02})"


def local_drives(cluster: Cluster, vm: Vm) -> list[Drive]:
    """Return the drives of a VM on storages of its node's own."""
    return [
        drive
        for drive in drives_of(vm.config, unused=True)
        if drive.storage and not cluster.storage(drive.storage).shared
    ]


def worker(call: Call, job: Job, target: str) -> Work:
    """Move the VM of a call to a node."""
    inner: Work = _worker(call, job, target)
    go_on = functools.partial(next, inner)
    while True:
        try:
            effect = go_on()
        except StopIteration:
            return
        try:
            go_on = functools.partial(inner.send, (yield effect))
        except Interrupted:
            job.log("received interrupt - delayed")
            yield Sleep(KILL_AFTER_SECONDS)
            raise WorkerKilled from None
        except PveError as error:
            go_on = functools.partial(inner.throw, error)


def _worker(call: Call, job: Job, target: str) -> Work:
    cluster, log = call.cluster, Log(job)
    lock = yield from config_lock.take(call, job)
    vm = call.vm()
    check_lock(vm)
    if vm.running:
        log(
            "conntrack state migration not supported or disabled, active connections might get "
            "dropped"
        )
    log(f"starting migration of VM {vm.vmid} to node '{target}' ({cluster.nodes[target].ip})")
    local = local_drives(cluster, vm)
    migration_disks.check(call, vm, local, log)
    cluster.edit(vm).config["lock"] = "migrate"
    moved: list[Moved] = []
    phase = 1
    try:
        yield Sleep(SETUP_SECONDS)
        check_target(cluster, target)
        yield from migration_disks.copy(call, log, vm, local, target, moved)
        phase = 2
        if vm.running:
            yield from _copy_memory(cluster, vm, log, target)
        check_target(cluster, target)
    except PveError as error:
        _fail(call, vm, moved, target, log, phase, error)
    arrive(call, vm, moved, target)
    if any(one.action == "migration-problems" for one in cluster.faults.orders.values()):
        log("ERROR: volume deactivation failed: simulated")
        log(f"ERROR: migration finished with problems {log.duration}")
        raise PveError("migration problems")
    for one in moved:
        cluster.remove_volume(one.source)
    log(f"migration finished successfully {log.duration}")
    yield Release(lock)


def check_target(cluster: Cluster, target: str) -> None:
    """Raise PveError if the target is down."""
    if not cluster.nodes[target].up:
        raise PveError(
            f"command '/usr/bin/ssh -e none -o 'BatchMode=yes' -o 'HostKeyAlias={target}' "
            f"root@{cluster.nodes[target].ip} /bin/true' failed: exit code 255"
        )


def _fail(
    call: Call,
    vm: Vm,
    moved: list[Moved],
    target: str,
    log: Log,
    phase: int,
    error: PveError,
) -> None:
    """Leave the VM where it was, and remove the copies if the target answers."""
    cluster = call.cluster
    what = "online migrate failure - " if vm.running else ""
    log(f"ERROR: {what}{error.text}")
    log(f"aborting phase {phase} - cleanup resources")
    if phase == 2:
        log("migrate_cancel")
    if cluster.nodes[target].up:
        for one in moved:
            cluster.remove_volume(one.copy)
    cluster.migrations.pop(vm.vmid, None)
    if cluster.vms.get(vm.vmid) is vm:
        cluster.edit(vm).config.pop("lock", None)
    if phase == 2:
        log(f"ERROR: migration finished with problems {log.duration}")
        raise PveError("migration problems") from error
    log(f"ERROR: migration aborted {log.duration}: {error.text}")
    raise PveError("migration aborted") from error


def _copy_memory(cluster: Cluster, vm: Vm, log: Log, target: str) -> Work:
    total = memory_of(vm)
    state = cluster.migrations[vm.vmid] = Migration(total)
    log(f"starting online/live migration on unix:/run/qemu-server/{vm.vmid}.migrate")
    for line in (
        "set migration capabilities",
        "migration downtime limit: 100 ms",
        "migration cachesize: 16.0 MiB",
        "set migration parameters",
        f"start migrate command to unix:/run/qemu-server/{vm.vmid}.migrate",
    ):
        log(line)
    seconds = _slowness(cluster) or total / MEMORY_BYTES_PER_SECOND
    for step in range(1, _LOOKS + 1):
        for _ in range(_LOOKS):
            yield Sleep(0 if state.stopped else seconds / _LOOKS / _LOOKS)
            check_target(cluster, target)
            if state.cancelled:
                log("migration status error: cancelled")
                raise PveError("aborting")
        state.transferred = total * step // _LOOKS
        if step < _LOOKS:
            log(
                f"migration active, transferred {disks.human(state.transferred)} of "
                f"{disks.human(total)} VM-state, {disks.human(total / seconds)}/s"
            )
    log(f"average migration speed: {disks.human(total / seconds)}/s - downtime 49 ms")
    log(f"migration completed, transferred {disks.human(total)} VM-state")
    log("migration status: completed")
    del cluster.migrations[vm.vmid]


def _slowness(cluster: Cluster) -> float:
    """Return the seconds that the memory takes, if a fault says so."""
    faults = cluster.faults.orders.values()
    return next((one.seconds for one in faults if one.action == "migration-slow"), 0.0)


def arrive(call: Call, vm: Vm, moved: list[Moved], target: str) -> None:
    """Have the configuration on the target; a running guest runs there, a paused one is paused."""
    cluster = call.cluster
    cluster.edit(vm)
    for one in moved:
        one.drive.file = one.copy.volid
        if one.drive.name.startswith("unused"):
            vm.config[one.drive.name] = one.copy.volid
        else:
            one.drive.options["size"] = disks.print_size(one.copy.size)
            vm.config[one.drive.name] = one.drive.text()
    vm.config.pop("lock", None)
    vm.node = target
    if vm.running:
        node = cluster.nodes[target]
        node.last_pid += 1
        vm.pid = node.last_pid

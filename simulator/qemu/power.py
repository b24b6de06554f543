"""Start, stop, reset, suspend: one worker each."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from simulator.engine import Release, Sleep, Work
from simulator.errors import PveError, no_config, no_configuration_found, read_only
from simulator.qemu import cleanup, config_lock, ha_power, pending, suspend_disk
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import drives_of
from simulator.qemu.network import parse_net
from simulator.request.call import Call
from simulator.state import mapped_devices, sdn
from simulator.state.cluster import Cluster
from simulator.state.model import Vm
from simulator.state.tasks import Job

START_SECONDS = 0.8
STOP_SECONDS = 0.5
RESET_SECONDS = 0.2
PAUSE_SECONDS = 0.2
GUEST_SHUTDOWN_SECONDS = 3.0
AGENT_AFTER_SECONDS = 10.0
SHUTDOWN_TIMEOUT = 60.0

Step = Callable[[Cluster, Job, Vm], Work]


def end_process(cluster: Cluster, vm: Vm) -> None:
    """End QEMU: pending changes are applied, and the node begins to clean up."""
    mark_stopped(cluster, vm)
    cleanup.begin(cluster, vm)


def mark_stopped(cluster: Cluster, vm: Vm) -> None:
    """Mark a VM as stopped without clean-up: its node is down, or a start follows."""
    vm.status = vm.qmp = "stopped"
    vm.pid, vm.started, vm.agent_ready = 0, 0.0, 0.0
    cluster.consoles.cut(vm.vmid)
    cluster.touch(vm)
    if cluster.quorate:
        pending.apply_pending(cluster, vm)


def start(call: Call) -> str:
    """`status/start`."""
    skip = call.skiplock()
    call.cluster.check_quorum()
    if ha_power.resource(call.cluster, call.vmid):
        return ha_power.request(call, "started", _started(call))
    return launch(call, call.vmid, skip)


def launch(call: Call, vmid: int, skip: bool = False) -> str:
    """Start the worker that starts a VM; also for `start=1` on create."""
    return call.start("qmstart", vmid, lambda job: _start(call, job, vmid, skip))


def _started(call: Call) -> Work:
    """Start a VM for the HA manager; do nothing if it runs."""
    if not call.cluster.vms[call.vmid].running:
        yield from _start(call, None, call.vmid, False)


def _ended(call: Call, seconds: float) -> Work:
    """Stop a VM for the manager: shut down with a timeout, then stop."""
    lock = yield from call.cluster.lock_vm(call.node, call.vmid)
    vm = call.cluster.vms[call.vmid]
    check_lock(vm)
    if vm.running:
        yield Sleep(seconds)
        end_process(call.cluster, vm)
    yield Release(lock)


def _start(call: Call, job: Job | None, vmid: int, skip: bool) -> Work:
    cluster, node = call.cluster, call.node
    lock = yield from config_lock.take(call, job, vmid)
    vm = cluster.vm(node, vmid)
    suspended = vm.lock == "suspended"
    check_lock(vm, skip=skip or suspended)
    if vm.template:
        raise PveError("you can't start a vm if it's a template")
    if vm.running:
        raise PveError(f"VM {vmid} already running")
    if not vm.running and (vm.pending or vm.pending_delete):
        pending.apply_pending(cluster, cluster.edit(vm))
    _check_resources(cluster, vm)
    if any(one.cloudinit for one in drives_of(vm.config)):
        _log(job, "generating cloud-init ISO")
    if suspended:
        _log(job, "Resuming suspended VM")
        if "vmstate" in vm.config:
            _log(job, f"activating and using '{vm.config['vmstate']}' as vmstate")
    yield Sleep(START_SECONDS + _delay(cluster, vm))
    mark_running(cluster, vm)
    if suspended:
        _log(job, "Resumed VM, removing state")
        if cluster.faults.leak("L9", node, vmid):
            raise read_only(node, vmid, call.cluster.nodes[node].last_pid)
        suspend_disk.forget(cluster, vm)
    yield Release(lock)


def _delay(cluster: Cluster, vm: Vm) -> float:
    """Return how much longer a start takes, as with large memory or a slow storage."""
    return sum(fault.seconds for fault in cluster.faults.standing("start-slow", vmid=vm.vmid))


def _log(job: Job | None, line: str) -> None:
    """Write to the task's log, if there is a task; the manager's tasks are not simulated."""
    if job is not None:
        job.log(line)


def _check_resources(cluster: Cluster, vm: Vm) -> None:
    node = cluster.nodes[vm.node]
    for one in drives_of(vm.config):
        if one.storage and cluster.volume(one.file, vm.node) is None:
            raise PveError(f"volume '{one.file}' does not exist")
    for name in sorted(vm.config):
        if name.startswith("net"):
            card = parse_net(vm.config[name])
            bridge = card.get("bridge")
            if bridge and not sdn.present(cluster, node, bridge):
                raise PveError(f"bridge '{bridge}' does not exist")
            if bridge in node.bridges[1:] and card.get("tag"):
                raise PveError(f"no physical interface on bridge '{bridge}'")
    mapped_devices.check(cluster, vm)
    cores = int(vm.config.get("cores", "1")) * int(vm.config.get("sockets", "1"))
    if cores > node.cpus:
        raise PveError(f"MAX {node.cpus} vcpus allowed per VM on this node")


def mark_running(cluster: Cluster, vm: Vm) -> None:
    """Mark a VM as running; its guest agent answers some seconds later."""
    node = cluster.nodes[vm.node]
    node.last_pid += 1
    vm.status = vm.qmp = "running"
    vm.pid, vm.started = node.last_pid, time.time()
    vm.agent_ready = cluster.engine.clock.now() + AGENT_AFTER_SECONDS
    cluster.touch(vm)


#: a backup's lock does not prevent suspending and resuming
_PASS_BACKUP = frozenset({"qmpause", "qmresume"})


def _simple(call: Call, kind: str, seconds: float, act: Callable[[Cluster, Vm], None]) -> str:
    skip, vmid = call.skiplock(), call.vmid

    def body(job: Job) -> Work:
        vm = _found(call, vmid, kind)
        lock = yield from config_lock.take(call, job)
        vm = _found(call, vmid, kind)
        # A stop ignores locks if nothing runs.
        passes = vm.lock == "backup" and kind in _PASS_BACKUP
        check_lock(vm, skip=skip or passes or (kind == "qmstop" and not vm.running))
        if not vm.running and kind != "qmstop":
            raise PveError(f"VM {vmid} not running")
        yield Sleep(seconds if vm.running else 0.05)
        act(call.cluster, vm)
        yield Release(lock)

    return call.start(kind, vmid, body)


def _found(call: Call, vmid: int, kind: str) -> Vm:
    vm = call.cluster.vms.get(vmid)
    if vm is None or vm.node != call.node:
        if kind in ("qmstop", "qmshutdown"):
            raise no_configuration_found(call.node, vmid)
        raise no_config(call.node, vmid)
    return vm


def _must_run(call: Call) -> Vm:
    """Return the VM that the path names. Raises 500 unless it runs."""
    vm = call.cluster.vms.get(call.vmid)
    if vm is None or vm.node != call.node:
        raise no_configuration_found(call.node, call.vmid)
    if not vm.running:
        raise PveError(f"VM {call.vmid} not running")
    return vm


def stop(call: Call) -> str:
    """`status/stop`: at once; succeeds for a stopped VM."""
    if ha_power.resource(call.cluster, call.vmid):
        return ha_power.request(call, "stopped", _ended(call, STOP_SECONDS))
    return _simple(call, "qmstop", STOP_SECONDS, _end_if_running)


def _end_if_running(cluster: Cluster, vm: Vm) -> None:
    if vm.running:
        end_process(cluster, vm)


def reset(call: Call) -> str:
    """`status/reset`: the QEMU process continues, so there is no clean-up."""
    _must_run(call)
    return _simple(call, "qmreset", RESET_SECONDS, lambda cluster, vm: None)


def suspend(call: Call) -> str:
    """`status/suspend`: pause, or save to disk with `todisk`."""
    vm = _must_run(call)
    if call.flag("todisk"):
        suspend_disk.check(call, vm)
        return call.start("qmsuspend", vm.vmid, lambda job: _save_to_disk(call, job))
    return _simple(call, "qmpause", PAUSE_SECONDS, _pause)


def _pause(cluster: Cluster, vm: Vm) -> None:
    cluster.touch(vm).qmp = "paused"


def _save_to_disk(call: Call, job: Job) -> Work:
    lock = yield from config_lock.take(call, job)
    vm = call.vm()
    if vm.lock == "backup":
        raise PveError("cannot suspend to disk during backup")
    check_lock(vm)
    yield from suspend_disk.prepare(call, job, vm)
    yield Release(lock)
    yield from suspend_disk.save(call, job, vm)
    lock = yield from config_lock.take(call, job)
    call.cluster.edit(vm).config["lock"] = "suspended"
    end_process(call.cluster, vm)
    yield Release(lock)


def resume(call: Call) -> str:
    """`status/resume`."""
    vm = call.cluster.vms.get(call.vmid)
    if vm is not None and vm.node == call.node and vm.lock == "suspended":
        return call.start("qmresume", vm.vmid, lambda job: _start(call, job, vm.vmid, False))
    _must_run(call)
    return _simple(call, "qmresume", PAUSE_SECONDS, _unpause)


def _unpause(cluster: Cluster, vm: Vm) -> None:
    cluster.touch(vm).qmp = "running"


_KEY = re.compile(
    r"(?:(?:ctrl|alt|shift|meta_[lr])-)*(?:[a-z0-9]|f[0-9]+|delete|ret|esc|tab|spc|up|down)"
)


def sendkey(call: Call) -> Work:
    """`sendkey`: send keys; needs the configuration's lock and a running VM."""
    call.skiplock()
    if not _KEY.fullmatch(call.get("key")):
        raise PveError("Bad Request", 400, body=False)
    _must_run(call)
    lock = yield from config_lock.take(call, None)
    yield Release(lock)


def shutdown(call: Call) -> str:
    """`status/shutdown`: wait until the guest ends, or for the timeout."""
    skip = call.skiplock()
    if ha_power.resource(call.cluster, call.vmid):
        timeout = float(call.get("timeout") or SHUTDOWN_TIMEOUT)
        return ha_power.request(
            call, "stopped", _ended(call, min(GUEST_SHUTDOWN_SECONDS, timeout))
        )

    def body(job: Job) -> Work:
        vm = _found(call, call.vmid, "qmshutdown")
        lock = yield from config_lock.take(call, job)
        check_lock(vm, skip=skip or not vm.running)
        if vm.running:
            yield from _power_down(call, job, vm)
            end_process(call.cluster, vm)
        yield Release(lock)

    return call.start("qmshutdown", call.vmid, body)


def _power_down(call: Call, job: Job, vm: Vm) -> Work:
    timeout = float(call.get("timeout") or SHUTDOWN_TIMEOUT)
    if vm.config.get("acpi") == "0" or vm.qmp == "paused":
        yield Sleep(timeout)
        if not call.flag("forceStop"):
            raise PveError("VM quit/powerdown failed - got timeout")
        job.log("VM still running - terminating now with SIGTERM")
        return
    yield Sleep(min(GUEST_SHUTDOWN_SECONDS, timeout))


def reboot(call: Call) -> str:
    """`status/reboot`: shut down and start again."""
    vm = _must_run(call)

    def body(job: Job) -> Work:
        lock = yield from config_lock.take(call, job)
        check_lock(vm)
        yield from _power_down(call, job, vm)
        mark_stopped(call.cluster, vm)
        yield Sleep(START_SECONDS)
        mark_running(call.cluster, vm)
        yield Release(lock)

    return call.start("qmreboot", call.vmid, body)

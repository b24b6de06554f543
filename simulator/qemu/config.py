"""`PUT`/`POST …/config`: set, delete, pending changes, disks that become unused."""

from __future__ import annotations

import re
import uuid

from simulator.engine import Release, Sleep, Work
from simulator.errors import PveError, bad_parameters
from simulator.qemu import drives, hotplug, network, pending, permits, suspend_disk
from simulator.qemu.config_lock import check_lock
from simulator.qemu.create import unique_tags
from simulator.qemu.drives import Builder, Drive, drives_of, parse_drive
from simulator.request.call import Call
from simulator.request.vmschema import is_drive, is_option
from simulator.state import disks, sdn
from simulator.state.model import Vm
from simulator.state.tasks import Job
from simulator.state.volumes import owner_of, parse_volid

# These take effect at once on a running VM; so do disks and network cards (hotplug).
FAST = frozenset(
    [
        "onboot",
        "shares",
        "startup",
        "description",
        "protection",
        "vmstatestorage",
        "hookscript",
        "tags",
        "lock",
        "name",
    ]
)


class Change:
    """One update: what to set, what to delete, and the expected digest."""

    def __init__(self, call: Call) -> None:
        self.digest = call.get("digest")
        self.skip = call.skiplock()
        self.set = {k: v for k, v in call.params.items() if is_option(k)}
        self.force = call.flag("force")
        self.delete = [name for name in re.split(r"[,;\s\0]+", call.get("delete")) if name]
        self.revert = [name for name in re.split(r"[,;\s\0]+", call.get("revert")) if name]
        shown = {k: v for k, v in call.params.items() if k not in ("node", "vmid", "digest")}
        self.line = " ".join(
            f"-{name} {'<hidden>' if name == 'cipassword' else shown[name]}"
            for name in sorted(shown)
            if name != "background_delay"
        )
        if not self.set and not self.delete and not self.revert:
            raise PveError("no options specified")
        if "cdrom" in self.set:
            self.set["ide2"] = f"{self.set.pop('cdrom')},media=cdrom"
        self._check_names()

    def _check_names(self) -> None:
        for name in self.revert:
            if not is_option(name):
                raise bad_parameters(revert=f"unknown option '{name}'")
        for name in self.delete:
            if name in self.set:
                raise bad_parameters(
                    delete=f"you can't use '-{name}' and -delete {name}' at the same time"
                )
            if not is_option(name) and name != "vmstate":
                raise bad_parameters(delete=f"unknown option '{name}'")


def _prepare(call: Call) -> Change:
    change = Change(call)
    cluster, who, vmid = call.cluster, call.who, call.vmid
    drives.check_syntax(change.set)
    for name in change.set:
        if name.startswith("net"):
            prefix = cluster.options["mac_prefix"]
            change.set[name] = network.with_mac(change.set[name], prefix)
    permits.options(cluster, who, vmid, None, change.delete)
    permits.options(cluster, who, vmid, None, change.set)
    permits.devices(cluster, who, vmid, None, change.set)
    permits.storages(cluster, who, vmid, change.set)
    permits.bridges(cluster, who, change.set)
    _loaded(call, change)
    return change


def _loaded(call: Call, change: Change) -> Vm:
    vm = call.vm()
    if change.digest and change.digest != vm.digest():
        raise PveError("checksum mismatch (file change by other user?)")
    wakes = "vmstate" in change.delete and vm.lock == "suspended"
    check_lock(vm, skip=change.skip or wakes)
    _check_boot(change, vm)
    memory = int(change.set.get("memory", "0").partition("=")[2] or change.set.get("memory", "0"))
    if memory and int(change.set.get("balloon", vm.config.get("balloon", "0"))) > memory:
        raise PveError("balloon value too large (must be smaller than assigned memory)")
    return vm


def _check_boot(change: Change, vm: Vm) -> None:
    order = change.set.get("boot", "")
    if not order.startswith("order="):
        return
    there = {*vm.config, *vm.pending, *change.set} - {*change.delete}
    for name in order.removeprefix("order=").split(";"):
        if name and name not in there:
            raise PveError(f"invalid bootorder: device '{name}' does not exist'")


def put(call: Call) -> Work:
    """Change a configuration and answer when it is done."""
    change = _prepare(call)
    lock = yield from call.cluster.lock_vm(call.node, call.vmid)
    yield from _update(call, change, None)
    yield Release(lock)


def unlink(call: Call) -> Work:
    """`unlink`: remove disks from a configuration; with `force` delete them too."""
    call.params["delete"] = call.params.pop("idlist")
    yield from put(call)


def post(call: Call) -> str:
    """Change a configuration in a task."""
    change = _prepare(call)

    def body(job: Job) -> Work:
        lock = yield from call.cluster.lock_vm(call.node, call.vmid)
        yield from _update(call, change, job)
        yield Release(lock)

    return call.start("qmconfig", call.vmid, body)


def _update(call: Call, change: Change, job: Job | None) -> Work:
    vm = _loaded(call, change)
    if job is not None:
        job.log(f"update VM {vm.vmid}: {change.line}")
    call.cluster.edit(vm)
    for name in change.revert:
        vm.pending.pop(name, None)
        for waiting in (vm.pending_delete, vm.pending_force):
            if name in waiting:
                waiting.remove(name)
    problems: dict[str, str] = {}
    for name in change.delete:
        problems[name] = yield from _delete(call, vm, name, change.force, job)
    for name in sorted(change.set):
        if is_drive(name):
            yield from _set_drive(call, vm, name, change.set[name], job)
        else:
            problems[name] = _set(call, vm, name, change.set[name])
    yield Sleep(0.02)
    pending.refuse(vm, {name: text for name, text in problems.items() if text})


def _set(call: Call, vm: Vm, name: str, value: str) -> str:
    """Set an option; return why a running VM can't take it, or empty."""
    if name == "tags":
        value = unique_tags(value)
    elif name == "vmgenid" and value == "1":
        value = str(uuid.uuid4())
    problem = _plug_problem(call, vm, name, value) if vm.running else ""
    now = name in FAST or name.startswith("net") or hotplug.pluggable(vm, name)
    if vm.running and (problem or not now):
        if vm.config.get(name) == value:
            vm.pending.pop(name, None)
        else:
            vm.pending[name] = value
        return problem
    vm.config[name] = value
    if not value and name != "boot":
        del vm.config[name]
    return ""


def _plug_problem(call: Call, vm: Vm, name: str, value: str) -> str:
    if not name.startswith("net"):
        return hotplug.problem(vm, name, value)
    bridge = network.parse_net(value).get("bridge")
    if bridge and not sdn.present(call.cluster, call.home(), bridge):
        script = "/usr/libexec/qemu-server/pve-bridge-hotplug"
        return (
            f"VM {vm.vmid} qmp command 'netdev_add' failed - network script {script} failed with "
            "status 512\n"
        )
    if pending.changes_card(vm, name, value):
        return pending.unplug_problem(vm, name, silent=_is_silent(call, vm))
    return ""


def _delete(call: Call, vm: Vm, name: str, force: bool, job: Job | None) -> Work:
    """Remove an option; return why a running VM can't, or empty."""
    cluster = call.cluster
    value = vm.config.get(name, vm.pending.get(name))
    if value is None:
        if job is not None:
            job.log(f"cannot delete '{name}' - not set in current configuration!")
        return ""
    vm.pending.pop(name, None)
    problem = ""
    if vm.running and _is_device(name):
        problem = pending.unplug_problem(vm, name, silent=_is_silent(call, vm))
    if name == "vmstate":
        suspend_disk.forget(cluster, vm)
    elif name.startswith("unused"):
        _check_protection(vm, f"can't remove unused disk '{value}'")
        cluster.access.require(call.who, f"/vms/{vm.vmid}", "VM.Config.Disk")
        _check_unused(call, vm, name, value)
        yield from _deallocate(call, vm, parse_drive(name, value))
        vm.config.pop(name, None)
    elif is_drive(name):
        _check_protection(vm, f"can't remove drive '{name}'")
        problem = yield from _delete_drive(call, vm, parse_drive(name, value), force, problem)
        return str(problem)
    elif vm.running and (problem or (name not in FAST and not name.startswith("net"))):
        pending.register(vm, name, False)
        return problem
    else:
        vm.config.pop(name, None)
        if name.startswith("net"):
            pending.leave_boot_order(vm, name)
    return ""


def _is_silent(call: Call, vm: Vm) -> bool:
    return bool(list(call.cluster.faults.standing("guest-silent", vmid=vm.vmid)))


def _is_device(name: str) -> bool:
    return is_drive(name) or name.startswith("net")


def _check_unused(call: Call, vm: Vm, name: str, volid: str) -> None:
    """Raise 500 if a drive names the same file, by any path."""
    there = call.cluster.volume(volid, call.node)
    drives = drives_of({key: one for key, one in vm.config.items() if key != name})
    for drive in drives:
        same = drive.file == volid or call.cluster.volume(drive.file, call.node) is there
        if there is not None and drive.storage and not drive.cdrom and same:
            raise PveError(f"unable to delete '{volid}' - volume is still in use (snapshot?)")


def _check_protection(vm: Vm, text: str) -> None:
    if vm.config.get("protection") == "1":
        raise PveError(f"{text} - protection mode enabled")


def _delete_drive(call: Call, vm: Vm, drive: Drive, force: bool, problem: str) -> Work:
    """Remove a disk; return why a running VM, or a snapshot, does not let it go, or empty."""
    name = drive.name
    permits.drive(call.cluster, call.who, vm.vmid, None, drive)
    if vm.running and (problem or name.startswith(pending.COLD)):
        pending.register(vm, name, force)
        return "" if name.startswith(pending.COLD) else problem
    if force and not drive.cdrom:
        try:
            yield from _deallocate(call, vm, drive)
        except PveError as error:
            pending.register(vm, name, force)
            return f"{error.text}\n"
    vm.config.pop(name, None)
    if drive.cdrom or not force:
        yield from _let_go(call, vm, drive)
    pending.leave_boot_order(vm, name)
    return ""


def _deallocate(call: Call, vm: Vm, drive: Drive) -> Work:
    """Free a disk's volume, unless it is another VM's. Raises PveError if it is used besides."""
    if not drive.storage or owner_of(parse_volid(drive.file).name) != vm.vmid:
        return
    path = f"/storage/{drive.storage}"
    call.cluster.access.require(call.who, path, "Datastore.AllocateSpace")
    if drives.used(vm, drive.name, drive.file):
        raise PveError(f"unable to delete '{drive.file}' - volume is still in use (snapshot?)")
    yield from disks.free(call.cluster, call.node, drive.file)


def _let_go(call: Call, vm: Vm, drive: Drive) -> Work:
    """Remove a drive: cloud-init volumes are freed, the VM's own disks become unused."""
    if not drive.storage or owner_of(parse_volid(drive.file).name) != vm.vmid:
        return
    if drive.cloudinit:
        yield from disks.free(call.cluster, call.node, drive.file)
    elif call.cluster.volume(drive.file, call.node) is not None:
        pending.add_unused(vm.config, drive.file)


def _set_drive(call: Call, vm: Vm, name: str, value: str, job: Job | None) -> Work:
    cluster = call.cluster
    old = parse_drive(name, vm.config[name]) if name in vm.config else None
    wanted = parse_drive(name, value)
    if old is not None:
        permits.drive(cluster, call.who, vm.vmid, None, old)
    permits.drive(cluster, call.who, vm.vmid, None, wanted)
    builder = Builder(cluster, call.node, vm.vmid, job)
    try:
        built = yield from builder.build({name: value})
    except PveError:
        for volume in builder.made:
            yield from disks.free(cluster, call.node, volume.volid)
        raise
    new = parse_drive(name, built[name])
    if vm.running and name.startswith(pending.COLD) and not (old and old.cdrom and new.cdrom):
        cluster.edit(vm).pending[name] = built[name]
        return
    cluster.edit(vm).config[name] = built[name]
    for unused in [key for key in vm.config if key.startswith("unused")]:
        if vm.config[unused] == new.file:
            del vm.config[unused]
    if old is not None and old.file != new.file:
        yield from _let_go(call, vm, old)
    boot = vm.config.get("boot", "")
    if new.cdrom and not new.cloudinit and boot.startswith("order=") and name not in boot:
        vm.config["boot"] = f"{boot};{name}"

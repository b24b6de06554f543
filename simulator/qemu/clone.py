"""`POST …/clone`: early checks in the request; the new VMID is claimed in the task."""

from __future__ import annotations

import copy
import uuid
from dataclasses import dataclass, field, replace

from simulator.engine import Release, Sleep, Work
from simulator.errors import Interrupted, PveError, WorkerKilled, parameter_errors
from simulator.propstring import join, split
from simulator.qemu import network, permits
from simulator.qemu.config_lock import check_lock
from simulator.qemu.create import give_back
from simulator.qemu.drives import Builder, Drive, drives_of, parse_drive
from simulator.request.call import Call
from simulator.request.vmschema import is_drive
from simulator.state import disks
from simulator.state.model import ConfigMap, Vm, Volume
from simulator.state.storage_kinds import BASE, CURRENT, SNAP, kind
from simulator.state.tasks import Job
from simulator.state.volumes import image_name, parse_volid

LOCK_WAIT = 1.0
_NOT_CLONED = ("parent", "vmstate", "snapstate", "lock", "template")


@dataclass
class Plan:
    """The plan of a clone: its configuration, and the drives to copy or link."""

    config: ConfigMap
    drives: list[Drive] = field(default_factory=list)
    full: bool = True
    name: str = ""


def clone(call: Call) -> str:
    """Make a full or a linked clone of a VM."""
    access, newid = call.cluster.access, int(call.params["newid"])
    pool = call.get("pool")
    if not access.has(call.who, f"/vms/{newid}", "VM.Allocate") and not (
        pool and access.has(call.who, f"/pool/{pool}", "VM.Allocate")
    ):
        raise PveError("Permission check failed", 403)
    _plan(call, newid)
    return call.start("qmclone", call.vmid, lambda job: _worker(call, job, newid))


def _target(call: Call) -> str:
    target = call.get("target")
    return "" if target in (call.node, "localhost") else target


def _plan(call: Call, newid: int) -> Plan:
    cluster, target = call.cluster, _target(call)
    pool, storage = call.get("pool"), call.get("storage")
    if pool and pool not in cluster.pools:
        raise PveError(f"Permission check failed (pool '{pool}' does not exist)", 403)
    if target and target not in cluster.nodes:
        raise PveError(f"no such cluster node '{target}'")
    if storage:
        _check_storage(call, storage, target)
    cluster.check_quorum()
    vm = call.vm()
    check_lock(vm)
    full = call.flag("full") if "full" in call.params else not vm.template
    for name in ("storage", "format"):
        if call.get(name) and not full:
            raise PveError(f"parameter '{name}' not allowed for linked clones")
    source = vm.config
    if call.get("snapname"):
        if call.get("snapname") not in vm.snapshots:
            raise PveError(f"snapshot '{call.get('snapname')}' does not exist")
        source = vm.snapshots[call.get("snapname")].config
    shared = _shared(call, source, storage)
    permits.bridges(cluster, call.who, source)
    if target and not shared:
        raise PveError(f"can't clone VM to node '{target}' (VM uses local storage)")
    present = cluster.vms.get(newid)
    if present is not None and present.node == call.node:
        raise PveError(f"unable to create VM {newid}: config file already exists")
    return _copied(call, source, full)


def _check_storage(call: Call, storage: str, target: str) -> None:
    found = call.cluster.enabled_storage(storage, call.node)
    if "images" not in found.content:
        raise parameter_errors({"storage": f"storage '{storage}' does not support vm images"})
    if target:
        call.cluster.enabled_storage(storage, target)
        if not found.shared:
            raise PveError(f"can't clone to non-shared storage '{storage}'")


def _shared(call: Call, config: ConfigMap, storage: str) -> bool:
    shared = True
    for drive in drives_of(config):
        if not drive.storage:
            continue
        shared = shared and call.cluster.storage(drive.storage).shared
        if not drive.cdrom:
            path = f"/storage/{storage or drive.storage}"
            call.cluster.access.require(call.who, path, "Datastore.AllocateSpace")
    return shared


def _copied(call: Call, source: ConfigMap, full: bool) -> Plan:
    cluster = call.cluster
    plan = Plan({}, full=full, name=call.get("name"))
    for name in sorted(source):
        value = source[name]
        if name in _NOT_CLONED or name.startswith("unused"):
            continue
        if name.startswith("net"):
            net = network.parse_net(value)
            net["macaddr"] = network.random_mac(cluster.options["mac_prefix"])
            plan.config[name] = network.print_net(net)
        elif is_drive(name):
            drive = parse_drive(name, value)
            if drive.cdrom and not drive.cloudinit:
                plan.config[name] = value
                continue
            volume = cluster.volume(drive.file, call.node)
            linkable = volume is not None and _able(call, volume, "clone")
            if not full and not drive.cloudinit and not linkable:
                raise PveError(
                    f"Linked clone feature is not supported for '{drive.file}' ({name})"
                )
            if full and volume is not None and not _able(call, volume, "copy"):
                raise PveError(f"Full clone feature is not supported for '{drive.file}' ({name})")
            plan.drives.append(drive)
        else:
            plan.config[name] = value
    return plan


def _able(call: Call, volume: Volume, feature: str) -> bool:
    """Return whether a volume, or a snapshot of it, can be linked to or copied."""
    of = SNAP if call.get("snapname") else BASE if volume.base else CURRENT
    return kind(call.cluster.storage(volume.storage)).has(feature, of, volume.format)


def _worker(call: Call, job: Job, newid: int) -> Work:
    cluster, node = call.cluster, call.node
    running = call.vm().running
    source = yield from cluster.lock_vm(node, call.vmid, LOCK_WAIT, shared=not running)
    target = yield from cluster.lock_vm(node, newid, LOCK_WAIT)
    plan = _plan(call, newid)
    job.log(f"creating a clone of VM {call.vmid} with ID {newid}")
    if newid in cluster.vms:
        raise PveError(
            f"close (rename) atomic file '/etc/pve/nodes/{node}/qemu-server/{newid}.conf' "
            "failed: File exists"
        )
    vm = cluster.add_vm(Vm(newid, node, {"lock": "clone"}))
    builder = Builder(cluster, node, newid, job)
    try:
        yield from _clone(call, job, vm, plan, builder)
    except PveError as error:
        yield Sleep(1.0)
        yield from give_back(call, job, builder)
        if vm.node == node and cluster.vms.get(newid) is vm:
            cluster.remove_vm(vm)
        text = "interrupted by signal" if isinstance(error, Interrupted) else error.text
        raise PveError(f"clone failed: {text}") from error
    _clone_firewall(call, newid)
    yield Release(target)
    yield Release(source)


def _clone_firewall(call: Call, newid: int) -> None:
    """Give the clone the VM's own firewall."""
    found = call.cluster.firewalls.get(f"vm/{call.vmid}")
    if found is not None:
        made = replace(copy.deepcopy(found), key=f"vm/{newid}")
        call.cluster.firewalls[made.key] = made
        call.cluster.save("firewall", made.key, made)


def _clone(call: Call, job: Job, vm: Vm, plan: Plan, builder: Builder) -> Work:
    cluster = call.cluster
    config = {**plan.config, "lock": "clone"}
    config["smbios1"] = _new_smbios(config.get("smbios1", ""))
    if "vmgenid" in config:
        config["vmgenid"] = str(uuid.uuid4())
    source = cluster.vms[call.vmid]
    config["name"] = plan.name or f"Copy-of-VM-{source.config.get('name', call.vmid)}"
    if call.get("description"):
        config["description"] = call.get("description")
    for drive in plan.drives:
        config[drive.name] = yield from _clone_drive(call, job, vm.vmid, drive, plan, builder)
        cluster.edit(vm).config = dict(config)
        if cluster.faults.leak("L4", call.node, vm.vmid, call.vmid):
            raise WorkerKilled
    del config["lock"]
    if source.pending:
        names = ",".join(sorted(source.pending))
        job.log(f"found pending changes for '{names}', discarding for clone")
    cluster.edit(vm).config = config
    target, pool = _target(call), call.get("pool")
    if target:
        cluster.edit(vm).node = target
    if cluster.faults.leak("L6", call.node, vm.vmid, call.vmid):
        raise PveError("cfs-lock 'file-user_cfg' error: got lock request timeout")
    if pool:
        cluster.set_pool(vm.vmid, pool)


def _new_smbios(text: str) -> str:
    rest = split(text, "uuid")
    rest.pop("uuid", None)
    return join(f"uuid={uuid.uuid4()}", rest)


def _clone_drive(
    call: Call, job: Job, newid: int, drive: Drive, plan: Plan, builder: Builder
) -> Work:
    cluster, node = call.cluster, call.node
    source = cluster.volume(drive.file, node)
    if source is None:
        raise PveError(f"volume '{drive.file}' does not exist")
    if plan.full or drive.cloudinit:
        made = yield from _full(call, job, newid, drive, source, builder)
    else:
        job.log(f"create linked clone of drive {drive.name} ({drive.file})")
        snap = call.get("snapname")
        made = yield from disks.clone_linked(cluster, job, node, source, newid, snap)
        builder.made.append(made)
    options = {**drive.options, "size": disks.print_size(made.size)}
    return Drive(drive.name, made.volid, options).text()


def _full(
    call: Call, job: Job, newid: int, drive: Drive, source: Volume, builder: Builder
) -> Work:
    cluster, node = call.cluster, call.node
    job.log(f"create full clone of drive {drive.name} ({drive.file})")
    storage = call.get("storage") or parse_volid(drive.file).storage
    image_format = call.get("format") or disks.default_format(source.name)
    name = ""
    if drive.cloudinit:
        image_format = source.format
        name = image_name(cluster.storage(storage), newid, "cloudinit", image_format)
    made = yield from disks.allocate(
        cluster, job, node, storage, newid, image_format, source.size, name
    )
    builder.made.append(made)
    job.log(f"allocated target volume '{made.volid}'")
    if not drive.cloudinit:
        yield from disks.copy(cluster, job, node, source, made, call.get("snapname"))
    return made

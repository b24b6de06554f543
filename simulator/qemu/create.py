"""`POST /nodes/{node}/qemu`: checks, the claim of the VMID, and the worker."""

from __future__ import annotations

import time
import uuid

from simulator.engine import Release, Work
from simulator.errors import PveError, WorkerKilled
from simulator.qemu import drives, network, permits, power, restored
from simulator.qemu.drives import Builder, parse_drive
from simulator.request.call import Call
from simulator.request.vmschema import is_drive, is_option
from simulator.state import disks, ha_resources
from simulator.state.model import ConfigMap, Vm
from simulator.state.tasks import Job

CLAIM_WAIT = 5.0
WORKER_WAIT = 1.0


def create(call: Call) -> Work:
    """Create a VM. The claim (a config with only `lock: create`) is written before the task."""
    cluster, vmid = call.cluster, call.vmid
    config = {name: text for name, text in call.params.items() if is_option(name)}
    if call.get("archive"):
        return restored.restore(call, config)
    cluster.check_quorum()
    pool = call.get("pool") or None
    _check(call, pool, config)
    emsg = f"unable to create VM {vmid} -"
    try:
        lock = yield from cluster.lock_vm(call.node, vmid, CLAIM_WAIT)
    except PveError as error:
        raise PveError(f"{emsg} {error.text}") from error
    taken = cluster.vms.get(vmid)
    if taken is not None:
        raise PveError(f"{emsg} VM {vmid} already exists on node '{taken.node}'")
    vm = cluster.add_vm(Vm(vmid, call.node, {"lock": "create"}))
    yield Release(lock)
    if cluster.faults.leak("L1", call.node, vmid):
        raise PveError("got no worker upid - start worker failed")
    return call.start("qmcreate", vmid, lambda job: _worker(call, job, vm, config, pool))


def _check(call: Call, pool: str | None, config: ConfigMap) -> None:
    cluster, who, vmid = call.cluster, call.who, call.vmid
    access = cluster.access
    if pool is not None and pool not in cluster.pools:
        raise PveError(f"Permission check failed (pool '{pool}' does not exist)", 403)
    if call.flag("ha-managed"):
        access.require(who, "/", "Sys.Console")
    if call.flag("start"):
        access.require_vm(who, vmid, pool, "VM.PowerMgmt")
    allowed = access.has(who, f"/vms/{vmid}", "VM.Allocate") or (
        pool is not None and access.has(who, f"/pool/{pool}", "VM.Allocate")
    )
    if not allowed:
        raise PveError("Permission check failed", 403)
    if "cdrom" in config:
        config["ide2"] = f"{config.pop('cdrom')},media=cdrom"
    permits.storages(cluster, who, vmid, config)
    permits.options(cluster, who, vmid, pool, config)
    permits.devices(cluster, who, vmid, pool, config)
    permits.bridges(cluster, who, config)
    drives.check_syntax(config)
    for name in config:
        if name.startswith("net"):
            config[name] = network.with_mac(config[name], cluster.options["mac_prefix"])


def _worker(call: Call, job: Job, vm: Vm, config: ConfigMap, pool: str | None) -> Work:
    try:
        lock = yield from call.cluster.lock_vm(call.node, vm.vmid, WORKER_WAIT)
        yield from _create(call, job, vm, config, pool)
        yield Release(lock)
    except PveError:
        if call.cluster.vms.get(vm.vmid) is vm:
            call.cluster.remove_vm(vm)
        raise
    if call.flag("ha-managed"):
        job.log("Add as HA resource")
        ha_resources.manage(call.cluster, vm.vmid, state="started")
    if call.flag("start"):
        job.log("Execute autostart")
        if not call.cluster.faults.leak("L5", call.node, vm.vmid):
            power.launch(call, vm.vmid)


def _create(call: Call, job: Job, vm: Vm, config: ConfigMap, pool: str | None) -> Work:
    cluster = call.cluster
    builder = Builder(cluster, call.node, vm.vmid, job)
    try:
        for name in sorted(config):
            if is_drive(name):
                permits.drive(cluster, call.who, vm.vmid, pool, parse_drive(name, config[name]))
        built = yield from builder.build(config)
        if cluster.faults.leak("L4", call.node, vm.vmid):
            raise WorkerKilled
        if cluster.faults.leak("L3", call.node, vm.vmid):
            builder.made.clear()
            raise PveError("error during disk creation: storage went away")
        cluster.edit(vm).config = _finished(call, {**config, **built})
    except PveError as error:
        yield from give_back(call, job, builder)
        raise PveError(f"unable to create VM {vm.vmid} - {error.text}") from error
    if cluster.faults.leak("L2", call.node, vm.vmid):
        raise PveError("cfs-lock 'file-user_cfg' error: got lock request timeout")
    if pool is not None:
        cluster.set_pool(vm.vmid, pool)


def give_back(call: Call, job: Job, builder: Builder) -> Work:
    """Free what a failed create or clone has made; log what can't be freed."""
    for volume in builder.made:
        try:
            yield from disks.free(call.cluster, call.node, volume.volid)
        except PveError as error:
            job.log(error.text)


def _finished(call: Call, config: ConfigMap) -> ConfigMap:
    """Return the configuration with all that the server adds."""
    qemu = call.cluster.version.qemu
    config["meta"] = f"creation-qemu={qemu},ctime={int(time.time())}"
    config.setdefault("boot", default_boot(config))
    config.setdefault("smbios1", f"uuid={uuid.uuid4()}")
    if config.get("vmgenid", "1") == "1":
        config["vmgenid"] = str(uuid.uuid4())
    if "tags" in config:
        config["tags"] = unique_tags(config["tags"])
    return config


def default_boot(config: ConfigMap) -> str:
    """Return the boot order: first disk, first CD-ROM, first network card."""
    found = [one for one in drives.drives_of(config) if one.name[:3] not in ("efi", "tpm")]
    disk = next((one.name for one in found if not one.cdrom), None)
    cdrom = next((one.name for one in found if one.cdrom and not one.cloudinit), None)
    card = next((name for name in sorted(config) if name.startswith("net")), None)
    order = [name for name in (disk, cdrom, card) if name]
    return "order=" + ";".join(order) if order else " "


def unique_tags(text: str) -> str:
    """Return the tags sorted and without repetition, as the server writes them."""
    tags = {tag.lower() for tag in text.replace(",", ";").replace(" ", ";").split(";") if tag}
    return ";".join(sorted(tags))

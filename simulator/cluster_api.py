"""The cluster over the API: status, resources, options, ids, tasks, HA, pools."""

from __future__ import annotations

import time
from typing import Any

from simulator.call import Call
from simulator.cluster import Cluster
from simulator.errors import PveError, bad_parameters
from simulator.model import Node, Pool, Task, Vm
from simulator.qemu.permits import READ_STORAGE
from simulator.qemu.status import cpus_of, usage

STATISTICS_SECONDS = 10.0
FIRST_ID, LAST_ID = 100, 1_000_000
TASKS_SHOWN = 25


def version(call: Call) -> dict[str, str]:
    """`GET /version`."""
    found = call.cluster.version
    return {"release": found.release, "repoid": found.repoid, "version": found.version}


def status(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/status`."""
    cluster = call.cluster
    shown: list[dict[str, Any]] = []
    if len(cluster.nodes) > 1:
        shown.append(
            {
                "id": "cluster",
                "name": cluster.name,
                "nodes": len(cluster.nodes),
                "quorate": int(cluster.quorate),
                "type": "cluster",
                "version": len(cluster.nodes) + 1,
            }
        )
    return shown + [
        {
            "id": f"node/{node.name}",
            "ip": node.ip,
            "level": "",
            "local": int(node.name == call.contacted),
            "name": node.name,
            "nodeid": node.nodeid if len(cluster.nodes) > 1 else 0,
            "online": int(node.up),
            "type": "node",
        }
        for node in cluster.nodes.values()
    ]


def refresh(cluster: Cluster) -> None:
    """Take new statistics if a cycle has passed since the last."""
    now = cluster.engine.clock.now()
    if now - cluster.stats_at < STATISTICS_SECONDS:
        return
    cluster.stats_at = now
    cluster.stats = {
        vm.vmid: _statistics(vm) for vm in cluster.vms.values() if cluster.nodes[vm.node].up
    }


def _statistics(vm: Vm) -> dict[str, Any]:
    return {
        **usage(vm),
        "maxcpu": cpus_of(vm),
        "name": vm.config.get("name", f"VM {vm.vmid}"),
        "status": vm.status,
        "template": int(vm.template),
    }


def guest(cluster: Cluster, vm: Vm) -> dict[str, Any]:
    """A VM as lists of resources show it: where it is is true now, the rest is statistics."""
    shown: dict[str, Any] = {
        "id": f"qemu/{vm.vmid}",
        "node": vm.node,
        "status": "unknown",
        "type": "qemu",
        "vmid": vm.vmid,
    }
    for name in ("tags", "lock"):
        if name in vm.config:
            shown[name] = vm.config[name]
    known = cluster.stats.get(vm.vmid)
    if known is not None and cluster.nodes[vm.node].up:
        shown |= known
    return shown


def resources(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/resources`."""
    cluster, wanted = call.cluster, call.get("type")
    refresh(cluster)
    shown: list[dict[str, Any]] = []
    if wanted in ("", "vm"):
        shown += _guests(call)
    if wanted in ("", "node"):
        shown += [{**_node(call, one), "cgroup-mode": 2} for one in cluster.nodes.values()]
        for entry in shown:
            entry.pop("ssl_fingerprint", None)
    if wanted in ("", "storage"):
        shown += _storages(call)
    if wanted in ("", "sdn", "network"):
        shown += _networks(call, wanted)
    return shown


def _guests(call: Call) -> list[dict[str, Any]]:
    cluster, access = call.cluster, call.cluster.access
    shown = []
    for vm in cluster.vms.values():
        if access.has(call.who, f"/vms/{vm.vmid}", "VM.Audit"):
            entry = guest(cluster, vm)
            pool = access.pool_of.get(vm.vmid)
            if pool is not None:
                entry["pool"] = pool
            shown.append(entry)
    return shown


def _storages(call: Call) -> list[dict[str, Any]]:
    cluster, access = call.cluster, call.cluster.access
    shown = []
    for storage in cluster.storages.values():
        if not access.has(call.who, f"/storage/{storage.id}", *READ_STORAGE):
            continue
        for node in cluster.nodes.values():
            if not storage.on(node.name) or storage.disabled:
                continue
            entry: dict[str, Any] = {
                "content": ",".join(storage.content),
                "id": f"storage/{node.name}/{storage.id}",
                "node": node.name,
                "plugintype": storage.type,
                "shared": int(storage.shared),
                "status": "available" if node.up else "unknown",
                "storage": storage.id,
                "type": "storage",
            }
            if node.up:
                entry["disk"] = cluster.used(storage, node.name)
                entry["maxdisk"] = storage.capacity
            shown.append(entry)
    return shown


def _networks(call: Call, wanted: str) -> list[dict[str, Any]]:
    access = call.cluster.access
    if not access.has(call.who, "/sdn/zones/localnetwork", "SDN.Audit", "SDN.Use"):
        return []
    modern = call.cluster.version.ha_rules
    if modern and wanted != "sdn":
        return [
            {
                "id": f"network/{node}/zone/localnetwork",
                "network": "localnetwork",
                "network-type": "zone",
                "node": node,
                "status": "ok",
                "type": "network",
            }
            for node in call.cluster.nodes
        ]
    return [
        {
            "id": f"sdn/{node}/localnetwork",
            "node": node,
            "sdn": "localnetwork",
            "status": "ok",
            "type": "sdn",
        }
        for node in call.cluster.nodes
    ]


def _node(call: Call, node: Node) -> dict[str, Any]:
    cluster = call.cluster
    shown: dict[str, Any] = {
        "id": f"node/{node.name}",
        "level": "",
        "node": node.name,
        "ssl_fingerprint": ":".join([f"{node.nodeid & 255:02X}"] * 32),
        "status": "online" if node.up else "offline",
        "type": "node",
    }
    if not cluster.access.has(call.who, f"/nodes/{node.name}", "Sys.Audit"):
        return shown
    local = next((one for one in cluster.storages.values() if not one.shared), None)
    shown |= {"maxcpu": node.cpus, "maxmem": node.memory}
    shown["maxdisk"] = local.capacity if local is not None else 0
    if node.up:
        shown["cpu"] = 0.02
        shown["mem"] = memory_used(cluster, node)
        shown["disk"] = cluster.used(local, node.name) if local is not None else 0
        shown["uptime"] = cluster.uptime(node)
    return shown


def memory_used(cluster: Cluster, node: Node) -> int:
    """Bytes of memory in use on a node, by the statistics of its VMs."""
    refresh(cluster)
    if cluster.memory_at != cluster.stats_at:
        cluster.memory_at = cluster.stats_at
        cluster.memory = {}
        for vmid, known in cluster.stats.items():
            vm = cluster.vms.get(vmid)
            if vm is not None:
                cluster.memory[vm.node] = cluster.memory.get(vm.node, 0) + known["mem"]
    return (4 << 30) + cluster.memory.get(node.name, 0)


def nodes(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes`."""
    return [_node(call, node) for node in call.cluster.nodes.values()]


def options(call: Call) -> dict[str, Any]:
    """`GET /cluster/options`."""
    return {**call.cluster.options, "allowed-tags": _tags(call.cluster)}


def set_options(call: Call) -> None:
    """`PUT /cluster/options`."""
    for name in call.get("delete").split(","):
        call.cluster.options.pop(name, None)
    given = {name: text for name, text in call.params.items() if name != "delete"}
    call.cluster.options.update(given)
    call.cluster.save("options", "options", call.cluster.options)


def _tags(cluster: Cluster) -> list[str]:
    found: set[str] = set()
    for vm in cluster.vms.values():
        found.update(tag for tag in vm.config.get("tags", "").split(";") if tag)
    return sorted(found)


def nextid(call: Call) -> str:
    """`GET /cluster/nextid`: reserves nothing."""
    wanted = call.get("vmid")
    if wanted:
        if int(wanted) in call.cluster.vms:
            raise bad_parameters(vmid=f"VM {wanted} already exists")
        return wanted
    bounds = dict(
        part.split("=", 1)
        for part in str(call.cluster.options.get("next-id", "")).split(",")
        if "=" in part
    )
    first = int(bounds.get("lower", FIRST_ID))
    for vmid in range(first, int(bounds.get("upper", LAST_ID))):
        if vmid not in call.cluster.vms:
            return str(vmid)
    raise PveError("unable to get any free VMID in range")


def tasks(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/tasks`: the latest of every node, as far as the broadcast reaches."""
    found: list[Task] = list(call.cluster.tasks.active())
    for node in call.cluster.nodes:
        for number, task in enumerate(call.cluster.tasks.archive(node)):
            if number >= TASKS_SHOWN:
                break
            found.append(task)
    mine = [task for task in found if may_see_task(call, task)]
    mine.sort(key=lambda task: task.starttime, reverse=True)
    return [_broadcast(task) for task in mine]


def may_see_task(call: Call, task: Task) -> bool:
    """Tell whether a task is the caller's own, or the caller may audit its node."""
    own = task.authid == call.who.authid or (not call.who.tokenid and task.user == call.who.user)
    return own or call.cluster.access.has(call.who, f"/nodes/{task.node}", "Sys.Audit")


def _broadcast(task: Task) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": task.id,
        "node": task.node,
        "saved": "0" if task.running else "1",
        "starttime": task.starttime,
        "type": task.type,
        "upid": task.upid,
        "user": task.authid,
    }
    if not task.running:
        shown |= {"endtime": task.endtime, "status": task.exitstatus}
    return shown


def nothing(call: Call) -> list[dict[str, Any]]:
    """A list that is always empty here: HA resources, rules and groups."""
    return []


def ha_groups(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/ha/groups`, which version 9 has replaced by rules."""
    if call.cluster.version.ha_rules:
        raise PveError("cannot index groups: ha groups have been migrated to rules")
    return []


def pools(call: Call) -> list[dict[str, Any]]:
    """`GET /pools`."""
    access = call.cluster.access
    wanted = call.get("poolid")
    if wanted:
        access.require(call.who, f"/pool/{wanted}", "Pool.Audit")
        return [_pool(call, _found_pool(call, wanted))]
    shown = []
    for pool in call.cluster.pools.values():
        if access.has(call.who, f"/pool/{pool.poolid}", "Pool.Audit"):
            entry: dict[str, Any] = {"poolid": pool.poolid}
            if pool.comment:
                entry["comment"] = pool.comment
            shown.append(entry)
    return shown


def pool(call: Call) -> dict[str, Any]:
    """`GET /pools/{poolid}`."""
    shown = _pool(call, _found_pool(call, call.get("poolid")))
    shown.pop("poolid")
    return shown


def _found_pool(call: Call, poolid: str) -> Pool:
    found = call.cluster.pools.get(poolid)
    if found is None:
        raise PveError(f"pool '{poolid}' does not exist")
    return found


def _pool(call: Call, found: Pool) -> dict[str, Any]:
    refresh(call.cluster)
    members = [guest(call.cluster, call.cluster.vms[vmid]) for vmid in found.vms]
    shown: dict[str, Any] = {"poolid": found.poolid, "members": members}
    if found.comment:
        shown["comment"] = found.comment
    return shown


def create_pool(call: Call) -> None:
    """`POST /pools`."""
    poolid = call.get("poolid")
    if not call.cluster.quorate:
        raise PveError("create pool failed: cfs-lock 'file-user_cfg' error: no quorum!")
    if poolid in call.cluster.pools:
        raise PveError(f"create pool failed: pool '{poolid}' already exists")
    made = Pool(poolid, call.get("comment"))
    call.cluster.pools[poolid] = made
    call.cluster.save("pool", poolid, made)


def update_pool(call: Call) -> None:
    """`PUT /pools`: comment and members."""
    found = _found_pool(call, call.get("poolid"))
    if "comment" in call.params:
        found.comment = call.get("comment")
    for text in [one for one in call.get("vms").replace(";", ",").split(",") if one]:
        vmid = int(text)
        if call.flag("delete"):
            if vmid not in found.vms:
                raise PveError(f"update pools failed: VM {vmid} is not a pool member")
            call.cluster.set_pool(vmid, None)
            continue
        present = call.cluster.access.pool_of.get(vmid)
        if present is not None and not call.flag("allow-move"):
            raise PveError(
                f"update pools failed: VM {vmid} belongs already to pool '{present}' and "
                "'allow-move' is not set"
            )
        call.cluster.set_pool(vmid, found.poolid)
    call.cluster.save("pool", found.poolid, found)


def delete_pool(call: Call) -> None:
    """`DELETE /pools`."""
    found = _found_pool(call, call.get("poolid"))
    if found.vms:
        raise PveError(
            f"delete pool failed: pool '{found.poolid}' is not empty (contains VM {found.vms[0]})"
        )
    del call.cluster.pools[found.poolid]
    call.cluster.drop("pool", found.poolid)


def clock(call: Call) -> dict[str, Any]:
    """`GET /nodes/{node}/time`."""
    now = int(time.time())
    return {"localtime": now, "time": now, "timezone": "UTC"}

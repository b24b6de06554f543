"""The statistics daemon's broadcasts: guests, nodes and storages, as of its last cycle."""

from __future__ import annotations

from typing import Any

from simulator.qemu.permits import READ_STORAGE
from simulator.qemu.status import cpus_of, usage
from simulator.request.call import Call
from simulator.state import sdn
from simulator.state.cluster import Cluster
from simulator.state.model import Node, Vm

STATISTICS_SECONDS = 10.0


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
    """Return a VM as in lists of resources: its node is current, the rest as of the last cycle."""
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
        shown += [{**_node(call, one), "cgroup-mode": 2} for one in cluster.members]
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
        for node in cluster.members:
            if not storage.on(node.name) or storage.disabled:
                continue
            is_known = node.up and not cluster.offline(storage.id, node.name)
            entry: dict[str, Any] = {
                "content": ",".join(storage.content),
                "id": f"storage/{node.name}/{storage.id}",
                "node": node.name,
                "plugintype": storage.type,
                "shared": int(storage.shared),
                "status": "available" if is_known else "unknown",
                "storage": storage.id,
                "type": "storage",
            }
            if is_known:
                entry["disk"] = cluster.used(storage, node.name)
                entry["maxdisk"] = storage.capacity
            shown.append(entry)
    return shown


def _networks(call: Call, wanted: str) -> list[dict[str, Any]]:
    """Return the zones of each node, from the nodes' broadcasts; a node that is down has none."""
    cluster, access = call.cluster, call.cluster.access
    modern = cluster.version.ha_rules and wanted != "sdn"
    shown = []
    for node in cluster.members:
        statuses = {sdn.LOCAL: "ok"} | (sdn.zone_status(cluster, node) if node.up else {})
        for zone, status in statuses.items():
            allowed = ("SDN.Audit", "SDN.Use") if zone == sdn.LOCAL else ("SDN.Audit",)
            if access.has(call.who, f"/sdn/zones/{zone}", *allowed):
                shown.append(
                    _zone(node.name, zone, modern) | {"node": node.name, "status": status}
                )
    return shown


def _zone(node: str, zone: str, modern: bool) -> dict[str, Any]:
    if modern:
        entry = {"id": f"network/{node}/zone/{zone}", "network": zone, "type": "network"}
        return entry | {"network-type": "zone"}
    return {"id": f"sdn/{node}/{zone}", "sdn": zone, "type": "sdn"}


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
    if cluster.faults.standing("maintenance", node=node.name):
        shown["hastate"] = "maintenance"
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
    """Return the bytes of memory in use on a node, from its VMs' statistics."""
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
    return [_node(call, node) for node in call.cluster.members]

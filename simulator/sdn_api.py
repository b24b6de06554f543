"""Software-defined networks over the API: `/cluster/sdn` and `/nodes/{node}/sdn`.

Written after the API's schema and its sources; no capture has any of it.
"""

from __future__ import annotations

from typing import Any

from simulator import sdn
from simulator.call import Call
from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.sdn_config import Vnet, Zone
from simulator.tasks import Job

RELOAD_SECONDS = 3.0
_NUMBERS = frozenset({"tag", "vlanaware", "isolate-ports", "mtu"})


def _shown(options: dict[str, str]) -> dict[str, Any]:
    return {name: int(text) if name in _NUMBERS else text for name, text in options.items()}


def zones(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/sdn/zones`: those that one may see."""
    access, found = call.cluster.access, call.cluster.sdn
    listed = found.running_zones if call.flag("running") else found.zones
    return [
        {"zone": one.zone, "type": one.type, **_shown(one.options)}
        | ({"nodes": ",".join(one.nodes)} if one.nodes else {})
        for one in listed.values()
        if access.has(call.who, f"/sdn/zones/{one.zone}", "SDN.Audit", "SDN.Allocate")
    ]


def vnets(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/sdn/vnets`: those that one may see."""
    access, found = call.cluster.access, call.cluster.sdn
    listed = found.running_vnets if call.flag("running") else found.vnets
    return [
        {"vnet": one.vnet, "zone": one.zone, "type": "vnet", **_shown(one.options)}
        for one in listed.values()
        if access.has(call.who, f"/sdn/zones/{one.zone}/{one.vnet}", "SDN.Audit", "SDN.Allocate")
    ]


def add_zone(call: Call) -> None:
    """`POST /cluster/sdn/zones`; it does nothing until it is applied."""
    name = call.get("zone")
    if name in call.cluster.sdn.zones:
        raise PveError(
            f"create sdn zone object failed: sdn zone object ID '{name}' already defined"
        )
    nodes = [one for one in call.get("nodes").split(",") if one]
    options = _others(call, "zone", "type", "nodes")
    call.cluster.sdn.zones[name] = Zone(name, call.get("type"), nodes, options)
    _save(call)


def add_vnet(call: Call) -> None:
    """`POST /cluster/sdn/vnets`."""
    found, name = call.cluster.sdn, call.get("vnet")
    if name in found.vnets:
        raise PveError(
            f"create sdn vnet object failed: sdn vnet object ID '{name}' already defined"
        )
    if call.get("zone") not in found.zones:
        raise PveError(f"create sdn vnet object failed: zone {call.get('zone')} does not exist")
    found.vnets[name] = Vnet(name, call.get("zone"), _others(call, "vnet", "zone", "type"))
    _save(call)


def delete_vnet(call: Call) -> None:
    """`DELETE /cluster/sdn/vnets/{vnet}`."""
    if call.cluster.sdn.vnets.pop(call.get("vnet"), None) is None:
        raise PveError(f"sdn '{call.get('vnet')}' does not exist")
    _save(call)


def apply(call: Call) -> str:
    """`PUT /cluster/sdn`: what is configured runs, once the nodes have reloaded."""
    cluster = call.cluster
    cluster.sdn.apply()
    _save(call)

    def body(job: Job) -> Work:
        yield Sleep(RELOAD_SECONDS)
        for node in cluster.nodes.values():
            if not node.up or cluster.faults.standing("no-reload", node=node.name):
                job.warn(f"{node.name}: error running 'reload network config'")
                continue
            job.log(f"{node.name}: reloading network config")
            node.sdn_version = cluster.sdn.version
            cluster.save("node", node.name, node)

    node = cluster.node(call.contacted)
    return cluster.tasks.start(node, "reloadnetworkall", "", call.who, body)


def node_zones(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/sdn/zones`."""
    found = sdn.zone_status(call.cluster, call.home())
    return [{"zone": zone, "status": status} for zone, status in found.items()]


def node_zone(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/sdn/zones/{zone}/content`: the zone's vnets and how they are there."""
    shown = []
    for vnet in sdn.vnets_of(call.cluster, call.home()):
        if vnet.zone == call.get("zone"):
            status, message = sdn.vnet_status(call.cluster, call.home(), vnet)
            entry = {"vnet": vnet.vnet, "status": status}
            shown.append(entry | ({"statusmsg": message} if message else {}))
    return shown


def _others(call: Call, *named: str) -> dict[str, str]:
    return {name: text for name, text in call.params.items() if name not in named}


def _save(call: Call) -> None:
    call.cluster.save("sdn", "sdn", call.cluster.sdn)

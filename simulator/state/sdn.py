"""A node's software-defined networks.

A vnet is on a node once its zone was applied and the node has reloaded since. `PUT /cluster/sdn`
applies and reloads on every node that is up; the others stay `pending`.
"""

from __future__ import annotations

from simulator.state.cluster import Cluster
from simulator.state.model import Node
from simulator.state.sdn_config import Vnet

LOCAL = "localnetwork"
NOT_GENERATED = "local sdn network configuration is not yet generated, please reload"
NOT_RELOADED = "local sdn network configuration is too old, please reload"


def zone_of(cluster: Cluster, bridge: str) -> str:
    """Return the zone of a vnet, or the one of plain bridges."""
    vnet = cluster.sdn.running_vnets.get(bridge)
    return vnet.zone if vnet is not None else LOCAL


def vnets_of(cluster: Cluster, node: Node) -> list[Vnet]:
    """Return the vnets assigned to a node."""
    zones = cluster.sdn.running_zones
    return [
        vnet
        for vnet in cluster.sdn.running_vnets.values()
        if vnet.zone in zones and zones[vnet.zone].on(node.name)
    ]


def vnet_status(cluster: Cluster, node: Node, vnet: Vnet) -> tuple[str, str]:
    """Return `available`, `pending` or `error`, with the reason."""
    if stale(cluster, node):
        return "pending", NOT_RELOADED if node.sdn_version else NOT_GENERATED
    for fault in cluster.faults.standing("vnet-error", node=node.name):
        if fault.vnet in ("", vnet.vnet):
            return "error", f"missing {vnet.vnet}"
    return "available", ""


def zone_status(cluster: Cluster, node: Node) -> dict[str, str]:
    """Return zone → status, for the zones of a node."""
    found = {
        name: "pending" if stale(cluster, node) else "available"
        for name, zone in sorted(cluster.sdn.running_zones.items())
        if zone.on(node.name)
    }
    for vnet in vnets_of(cluster, node):
        if vnet_status(cluster, node, vnet)[0] == "error":
            found[vnet.zone] = "error"
    return found


def stale(cluster: Cluster, node: Node) -> bool:
    """Return whether a node hasn't reloaded since the last change was applied."""
    return node.sdn_version < cluster.sdn.version


def present(cluster: Cluster, node: Node, bridge: str) -> bool:
    """Return whether a node has this bridge: a plain one, or a vnet's."""
    return bridge in node.bridges or any(
        vnet.vnet == bridge and vnet_status(cluster, node, vnet)[0] == "available"
        for vnet in vnets_of(cluster, node)
    )

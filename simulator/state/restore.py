"""Load a cluster that an earlier process saved."""

from __future__ import annotations

from typing import Any

from simulator.state.access import Access, Grant, Token, User
from simulator.state.cluster import Cluster
from simulator.state.firewall_config import Firewall, Named
from simulator.state.ha_config import HaGroup, HaResource, HaRule
from simulator.state.model import Node, PciMapping, Pool, Snapshot, Storage, Task, Vm, Volume
from simulator.state.persistence import Store
from simulator.state.sdn_config import Ip, Sdn, Subnet, Vnet, Zone


def restore(cluster: Cluster, store: Store) -> None:
    """Fill an empty cluster; tasks that ran when the earlier process ended count as killed."""

    def saved(kind: str) -> list[Any]:
        return [body for _key, body in store.read(cluster.index, kind)]

    nodes = sorted((Node(**body) for body in saved("node")), key=lambda node: node.nodeid)
    for node in nodes:
        # Injected faults don't outlive the process.
        node.up, node.proxy, node.daemon = True, "up", "up"
        cluster.nodes[node.name] = node
    cluster.storages.update({body["id"]: Storage(**body) for body in saved("storage")})
    cluster.pools.update({body["poolid"]: Pool(**body) for body in saved("pool")})
    cluster.mappings.update({body["id"]: PciMapping(**body) for body in saved("mapping")})
    cluster.ha.resources = {body["sid"]: HaResource(**body) for body in saved("ha-resource")}
    cluster.ha.groups = {body["group"]: HaGroup(**body) for body in saved("ha-group")}
    cluster.ha.rules = {body["rule"]: HaRule(**body) for body in saved("ha-rule")}
    cluster.firewalls = {body["key"]: _firewall(body) for body in saved("firewall")}
    for body in saved("shares"):
        cluster.shares = body
    for body in saved("sdn"):
        cluster.sdn = _sdn(body)
    for body in saved("vm"):
        body["snapshots"] = {name: Snapshot(**one) for name, one in body["snapshots"].items()}
        vm = Vm(**body)
        # The guest counts as booted: the other process's clock is gone.
        vm.agent_ready = 0.0
        cluster.vms[vm.vmid] = vm
    for vmid, spans in store.read(cluster.index, "history"):
        cluster.history.restore(int(vmid), spans)
    for body in saved("volume"):
        cluster.volumes.add(Volume(**body))
    cluster.data.update(store.read(cluster.index, "data"))
    cluster.options = saved("options")[0]
    _access(cluster.access, dict(store.read(cluster.index, "access")), cluster.pools)
    with cluster.turn():
        cluster.tasks.restore(Task(**body) for body in saved("task"))


def _firewall(body: dict[str, Any]) -> Firewall:
    named: dict[str, Any] = {
        kind: {key: Named(**one) for key, one in body.pop(kind).items()}
        for kind in ("aliases", "ipsets", "groups")
    }
    return Firewall(**body, **named)


def _sdn(body: dict[str, Any]) -> Sdn:
    kinds: dict[str, Any] = {"zones": Zone, "vnets": Vnet, "subnets": Subnet}
    kinds |= {f"running_{name}": kind for name, kind in kinds.items()} | {"ips": Ip}
    made: dict[str, Any] = {
        name: {key: kind(**one) for key, one in body.get(name, {}).items()}
        for name, kind in kinds.items()
    }
    return Sdn(**made, version=body["version"], lock=body.get("lock", ""))


def _access(access: Access, saved: dict[str, Any], pools: dict[str, Pool]) -> None:
    for body in saved["users"]:
        tokens = body.pop("tokens").items()
        kept = {name: Token(**{**one, "revoked": False}) for name, one in tokens}
        access.users[body["userid"]] = User(**body, tokens=kept)
    access.grants = [Grant(**body) for body in saved["grants"]]
    access.roles = {name: frozenset(privileges) for name, privileges in saved["roles"].items()}
    access.pool_of = {vmid: pool.poolid for pool in pools.values() for vmid in pool.vms}
    access.changed()

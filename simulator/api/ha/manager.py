"""The manager of high availability over the API: its status and migrations."""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any

from simulator.digits import is_digits
from simulator.errors import PveError
from simulator.qemu import ha_move
from simulator.qemu import migrate as one_migrate
from simulator.request.call import Call
from simulator.state.cluster import Cluster
from simulator.state.ha_config import HaResource
from simulator.state.model import Vm

_SETTLED = {"stopped": "stopped", "disabled": "stopped", "error": "error"}


def index(_call: Call) -> list[dict[str, str]]:
    """`GET /cluster/ha`."""
    return [{"id": name} for name in ("status", "resources", "groups", "rules")]


def migrate(call: Call) -> dict[str, str]:
    """`POST …/resources/{sid}/migrate`: live if it runs; accepts a node that is offline."""
    return _asked(call, online=True)


def relocate(call: Call) -> dict[str, str]:
    """`POST …/resources/{sid}/relocate`: stop, move and start."""
    return _asked(call, online=False)


def _asked(call: Call, *, online: bool) -> dict[str, str]:
    sid, node = call.get("sid"), call.get("node")
    sid = f"vm:{sid}" if is_digits(sid) else sid
    if sid not in call.cluster.ha.resources:
        raise PveError(f"no such resource '{sid}'")
    vmid = int(sid.partition(":")[2])
    ha_move.request(call.cluster, vmid, node, one_migrate.launch, online=online)
    return {"sid": sid, "requested-node": node}


# --- status


def current(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/ha/status/current`."""
    cluster = call.cluster
    home, active = _master(cluster), bool(cluster.ha.resources)
    quorate = int(cluster.quorate)
    status = "OK" if quorate else "No quorum on node"
    shown: list[dict[str, Any]] = [
        {"id": "quorum", "type": "quorum", "node": home, "quorate": quorate, "status": status}
    ]
    if active:
        shown.append(_daemon("master", "master", home, f"active, {_clock()}"))
    shown.append(
        {
            "id": "fencing",
            "type": "fencing",
            "node": home,
            "armed-state": "armed" if active else "standby",
            "status": f"{_watchdog('armed', active)} (CRM watchdog {_watchdog('active', active)})",
        }
    )
    if not active:
        return shown
    for name in cluster.nodes:
        shown.append(_daemon(f"lrm:{name}", "lrm", name, _lrm(cluster, name)))
    return [*shown, *(_service(cluster, one) for one in cluster.ha.resources.values())]


def _watchdog(word: str, active: bool) -> str:
    return word if active else "standby"


def _clock() -> str:
    return time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime())


def _daemon(name: str, kind: str, node: str, status: str) -> dict[str, Any]:
    now = int(time.time())
    return {"id": name, "type": kind, "node": node, "status": f"{node} ({status})"} | {
        "timestamp": now
    }


def _master(cluster: Cluster) -> str:
    return next(
        (name for name, node in cluster.nodes.items() if node.up), next(iter(cluster.nodes))
    )


def _managed(cluster: Cluster) -> list[tuple[HaResource, Vm]]:
    found = []
    for one in cluster.ha.resources.values():
        vm = cluster.vms.get(int(one.sid.partition(":")[2]))
        if vm is not None and one.options.get("state") != "ignored":
            found.append((one, vm))
    return found


def _lrm(cluster: Cluster, node: str) -> str:
    if not cluster.nodes[node].up:
        return f"old timestamp - dead?, {_clock()}"
    if cluster.faults.standing("maintenance", node=node):
        return f"maintenance mode, watchdog standby, {_clock()}"
    if any(vm.node == node for _, vm in _managed(cluster)):
        return f"active, watchdog active, {_clock()}"
    return f"idle, watchdog standby, {_clock()}"


def _service(cluster: Cluster, one: HaResource) -> dict[str, Any]:
    vm = cluster.vms.get(int(one.sid.partition(":")[2]))
    node, wanted = vm.node if vm else "", one.options.get("state", "started")
    lost = cluster.ha.lost.get(one.sid)
    state = lost or _state(vm, wanted)
    shown: dict[str, Any] = {
        "id": f"service:{one.sid}",
        "type": "service",
        "sid": one.sid,
        "node": node,
        "request_state": wanted,
        "state": state,
        "status": f"{one.sid} ({node}, {state})",
        "failback": int(one.options.get("failback", "1")),
        "max_restart": int(one.options.get("max_restart", "1")),
        "max_relocate": int(one.options.get("max_relocate", "1")),
    }
    if wanted != "ignored":
        shown["crm_state"] = lost or _SETTLED.get(wanted, "started")
    if "comment" in one.options:
        shown["comment"] = one.options["comment"]
    return shown


def _state(vm: Vm | None, wanted: str) -> str:
    if wanted in ("ignored", "error", "disabled"):
        return wanted
    running = vm is not None and vm.running
    if wanted == "stopped":
        return "stopping" if running else "stopped"
    return "started" if running else "starting"


def manager(call: Call) -> dict[str, Any]:
    """`GET /cluster/ha/status/manager_status`."""
    cluster, now = call.cluster, int(time.time())
    quorum = {"node": _master(cluster), "quorate": str(int(cluster.quorate))}
    if not cluster.ha.resources:
        return {"quorum": quorum, "manager_status": {"node_status": {}}}
    return {
        "quorum": quorum,
        "lrm_status": {
            name: {"mode": "active", "state": "active", "results": {}, "timestamp": now}
            for name in cluster.nodes
        },
        "manager_status": {
            "master_node": quorum["node"],
            "node_status": {
                name: "online" if node.up else "unknown" for name, node in cluster.nodes.items()
            },
            "service_status": {
                one.sid: {
                    "node": vm.node,
                    "state": cluster.ha.lost.get(one.sid)
                    or _SETTLED.get(one.options.get("state", ""), "started"),
                    "uid": _uid(one.sid),
                }
                for one, vm in _managed(cluster)
            },
            "timestamp": now,
        },
    }


def _uid(sid: str) -> str:
    return base64.b64encode(hashlib.sha256(sid.encode()).digest()[:16]).decode().rstrip("=")

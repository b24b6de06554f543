"""The cluster over the API: version, status, options, ids, tasks, HA."""

from __future__ import annotations

import time
from typing import Any

from simulator.errors import PveError, bad_parameters
from simulator.request.call import Call
from simulator.state.model import Task

FIRST_ID, LAST_ID = 100, 1_000_000
TASKS_SHOWN = 25


def version(call: Call) -> dict[str, str]:
    """`GET /version`."""
    found = call.cluster.version
    return {"release": found.release, "repoid": found.repoid, "version": found.version}


def node_version(call: Call) -> dict[str, str]:
    """`GET /nodes/{node}/version`."""
    shown = {"version": call.home().shown.get("version", call.cluster.version.version)}
    return version(call) | shown


def status(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/status`."""
    cluster = call.cluster
    shown: list[dict[str, Any]] = []
    if len(cluster.members) > 1:
        shown.append(
            {
                "id": "cluster",
                "name": cluster.name,
                "nodes": len(cluster.members),
                "quorate": int(cluster.quorate),
                "type": "cluster",
                "version": len(cluster.members) + 1,
            }
        )
    return shown + [
        {
            "id": f"node/{node.name}",
            "ip": node.ip,
            "level": "",
            "local": int(node.name == call.contacted),
            "name": node.name,
            "nodeid": node.nodeid if len(cluster.members) > 1 else 0,
            "online": int(node.up),
            "type": "node",
        }
        for node in cluster.members
    ]


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
    """`GET /cluster/tasks`: the latest tasks of every node whose broadcasts arrive."""
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
    """Return whether the caller owns a task or may audit its node."""
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


def clock(call: Call) -> dict[str, Any]:
    """`GET /nodes/{node}/time`."""
    now = int(time.time()) + int(call.home().shown.get("clock", 0))
    return {"localtime": now, "time": now, "timezone": "UTC"}

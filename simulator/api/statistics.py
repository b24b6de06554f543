"""Round-robin data: one point a minute for an hour, mostly empty, as on a new server."""

from __future__ import annotations

import time
from typing import Any

from simulator.errors import PveError
from simulator.request.call import Call

POINTS = 70
STEP_SECONDS = {"hour": 60, "day": 1800, "week": 10_800, "month": 43_200, "year": 604_800}
_SOCKET = "RRD error: rrdcached@unix:/var/run/rrdcached.sock: rrd_fetch_r failed"


def _points(call: Call, last: dict[str, Any]) -> list[dict[str, Any]]:
    step = STEP_SECONDS.get(call.get("timeframe"), 31_536_000)
    end = int(time.time()) // step * step
    times: list[dict[str, Any]] = [
        {"time": end - step * back} for back in range(POINTS - 1, -1, -1)
    ]
    times[-1] |= last
    return times


def of_vm(call: Call) -> list[dict[str, Any]]:
    """`GET …/qemu/{vmid}/rrddata`."""
    vm = call.cluster.vms.get(call.vmid)
    if vm is None:
        path = f"/var/lib/rrdcached/db/pve-vm-9.0/{call.vmid}"
        raise PveError(f"{_SOCKET}: opening '{path}': No such file or directory")
    if not vm.running:
        return _points(call, {})
    return _points(call, {"maxcpu": int(vm.config.get("cores", "1")), "cpu": 0.0})


def of_storage(call: Call) -> list[dict[str, Any]]:
    """`GET …/storage/{storage}/rrddata`."""
    storage = call.cluster.enabled_storage(call.get("storage"), call.node)
    used = call.cluster.used(storage, call.node)
    return _points(call, {"total": storage.capacity, "used": float(used)})


def of_node(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/rrddata`."""
    node = call.home()
    return _points(call, {"maxcpu": node.cpus, "memtotal": node.memory, "cpu": 0.0})

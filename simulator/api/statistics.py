"""Round-robin data of VMs, nodes and storages, with the archives of each version.

From PVE::RRD (pve-cluster 8.1, 9.0 and 9.1) and the definitions of the files in pmxcfs's status.c
and proxmox-rrd-migration-tool: a point is stamped with the end of its interval, rates are per
second, a point exists where at least half of its interval is known, and of a VM that doesn't run
only its sizes are known. Guests run nothing: their curves are waves that follow from the VMID.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from simulator.api.resources import memory_used
from simulator.errors import PveError
from simulator.qemu.status import cpus_of, disk_of, memory_of
from simulator.request.call import Call
from simulator.state.model import Vm

#: timeframe → seconds of a point, number of points
Archives = Mapping[str, tuple[int, int]]

_MINUTE, _HALF_HOUR, _QUARTER, _WEEK = 60, 1800, 21_600, 604_800
_ARCHIVES_8: Archives = {
    "hour": (_MINUTE, 70),
    "day": (_HALF_HOUR, 70),
    "week": (10_800, 70),
    "month": (43_200, 70),
    "year": (_WEEK, 70),
}
_ARCHIVES_9: Archives = {
    "hour": (_MINUTE, 60),
    "day": (_MINUTE, 1440),
    "week": (_HALF_HOUR, 336),
    "month": (_HALF_HOUR, 1440),
    "year": (_QUARTER, 1440),
    "decade": (_WEEK, 570),
}
#: as the first releases of 9 read them
_ARCHIVES_9_0: Archives = {**_ARCHIVES_9, "month": (_QUARTER, 121), "year": (_QUARTER, 1140)}
_ARCHIVES = {"8.3": _ARCHIVES_8, "8.4": _ARCHIVES_8, "9.0": _ARCHIVES_9_0}

_SOCKET = "RRD error: rrdcached@unix:/var/run/rrdcached.sock: rrd_fetch_r failed"
#: of the interval, to have a point: `xff` of the archives
_KNOWN = 0.5
_DAY = 86_400
_PRESSURE_OF_VM = tuple(
    f"pressure{what}{how}" for what in ("cpu", "io", "memory") for how in ("some", "full")
)
_PRESSURE_OF_NODE = tuple(one for one in _PRESSURE_OF_VM if one != "pressurecpufull")

Values = dict[str, float]


def of_vm(call: Call) -> list[dict[str, Any]]:
    """`GET …/qemu/{vmid}/rrddata`; any node answers for any VM of the cluster, also a former."""
    history = call.cluster.history
    if not history.knows(call.vmid):
        kind = "pve-vm-9.0" if _modern(call) else "pve2-vm"
        path = f"/var/lib/rrdcached/db/{kind}/{call.vmid}"
        raise PveError(f"{_SOCKET}: opening '{path}': No such file or directory")
    vm = call.cluster.vms.get(call.vmid)
    disk = disk_of(vm) if vm is not None else 0

    def measured(begin: float, end: float) -> Values:
        known = list(history.overlapping(call.vmid, begin, end))
        there = [(seconds, one) for seconds, one in known if one.exists]
        if sum(seconds for seconds, _ in there) < _KNOWN * (end - begin):
            return {}
        span = there[-1][1]
        sized = Vm(call.vmid, "", dict(span.sizes))
        shown = {"maxcpu": cpus_of(sized), "maxmem": memory_of(sized), "maxdisk": disk, "disk": 0}
        running = sum(seconds for seconds, one in there if one.running)
        if running < _KNOWN * (end - begin):
            return dict(shown)
        return shown | _of_running(call, sized, (begin + end) / 2)

    return _points(call, measured)


def _of_running(call: Call, vm: Vm, at: float) -> Values:
    load = _wave(call, vm.vmid, at)
    used = memory_of(vm) * (0.2 + 0.3 * load)
    values = {
        "cpu": load,
        "mem": used,
        "netin": 40_000 * load,
        "netout": 90_000 * load,
        "diskread": 20_000 * load,
        "diskwrite": 60_000 * load,
    }
    if _modern(call):
        values |= {"memhost": used * 1.05, **dict.fromkeys(_PRESSURE_OF_VM, 0.0)}
        values["pressurecpusome"] = max(0.0, 40 * (load - 0.5))
    return values


def of_storage(call: Call) -> list[dict[str, Any]]:
    """`GET …/storage/{storage}/rrddata`."""
    storage = call.cluster.enabled_storage(call.get("storage"), call.node)
    used = float(call.cluster.used(storage, call.node))
    return _points(call, lambda begin, end: {"total": storage.capacity, "used": used})


def of_node(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/rrddata`."""
    cluster, node = call.cluster, call.home()
    used = memory_used(cluster, node)
    local = next((one for one in cluster.storages.values() if not one.shared), None)
    root = (local.capacity, cluster.used(local, node.name)) if local is not None else (0, 0)
    fixed = {"maxcpu": node.cpus, "memtotal": node.memory, "memused": used, "swaptotal": 0}
    fixed |= {"swapused": 0, "roottotal": root[0], "rootused": root[1]}

    def measured(begin: float, end: float) -> Values:
        load = 0.5 * _wave(call, node.nodeid, (begin + end) / 2)
        values = {**fixed, "cpu": load, "iowait": load / 50, "loadavg": load * node.cpus}
        values |= {"netin": 400_000 * load, "netout": 900_000 * load}
        if not _modern(call):
            return values
        values |= {"arcsize": 0, **dict.fromkeys(_PRESSURE_OF_NODE, 0.0)}
        values["memavailable"] = node.memory - used
        if call.cluster.version.release == "9.0":
            values["memfree"] = node.memory - used
        return values

    return _points(call, measured)


def _modern(call: Call) -> bool:
    return call.cluster.version.release not in ("8.3", "8.4")


def _points(call: Call, measured: Callable[[float, float], Values]) -> list[dict[str, Any]]:
    """Return the archive's points; ``measured`` returns what is known of an interval."""
    archives = _ARCHIVES.get(call.cluster.version.release, _ARCHIVES_9)
    timeframe = call.get("timeframe")
    step, count = archives.get(timeframe, archives["year"])
    last = int(time.time()) // step * step
    stamps = (last - step * back for back in range(count - 1, -1, -1))
    return [{"time": stamp, **measured(stamp - step, stamp)} for stamp in stamps]


def _wave(call: Call, number: int, at: float) -> float:
    """Return a load between 0.02 and 0.95: busier by day, with a shorter wave; MAX is higher."""
    phase = number * 2.399  # the golden angle: neighbours differ
    daily = 0.5 - 0.5 * math.cos(2 * math.pi * at / _DAY + phase / 7)
    short = math.sin(2 * math.pi * at / 1500 + phase)
    load = 0.06 + 0.35 * daily + 0.12 * short
    if call.get("cf") == "MAX":
        load *= 1.6
    return min(0.95, max(0.02, load))

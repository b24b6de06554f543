"""The control API under `/_sim/`: inspect, inject faults, change the speed, reset."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import orjson

from simulator.api.persistent_faults import apply, undo
from simulator.engine import Engine
from simulator.http.app import Entry, Request, Response
from simulator.state import pmxcfs
from simulator.state.cluster import Cluster
from simulator.state.faults import BadOrder
from simulator.state.model import MIB, Volume
from simulator.state.seed import add_storage
from simulator.state.volumes import content_of, format_of, owner_of, parse_volid

KEPT_CALLS = 20_000


class Resettable(Protocol):
    """The part of the simulator that the control API uses."""

    clusters: list[Cluster]
    engine: Engine

    def reset(self) -> None:
        """Reset everything but passwords and tokens."""


class Recorder:
    """Stores the last requests, in order."""

    def __init__(self) -> None:
        self._calls: deque[dict[str, Any]] = deque(maxlen=KEPT_CALLS)
        self._count = 0

    def add(self, entry: Entry, request: Request, status: int, began: float) -> None:
        """Record one request with its query string, without body and headers."""
        self._count += 1
        self._calls.append(
            {
                "n": self._count,
                "at": time.time(),
                "cluster": entry.cluster.name,
                "node": entry.node,
                "method": request.method,
                "path": urlsplit(request.target).path,
                "query": urlsplit(request.target).query,
                "status": status,
                "ms": round((time.monotonic() - began) * 1000, 2),
            }
        )

    def since(self, number: int) -> list[dict[str, Any]]:
        """Return the requests after the given number."""
        return [one for one in list(self._calls) if one["n"] > number]

    def clear(self) -> None:
        """Drop all recorded requests."""
        self._calls.clear()


def state_of(cluster: Cluster) -> dict[str, Any]:
    """Return one cluster's state for `GET /_sim/state`."""
    with cluster.turn():
        return {
            "name": cluster.name,
            "version": cluster.version.version,
            "quorate": cluster.quorate,
            "nodes": [asdict(node) for node in cluster.nodes.values()],
            "vms": [
                {
                    **asdict(vm),
                    "lock": vm.lock,
                    "digest": vm.digest(),
                    "pool": cluster.access.pool_of.get(vm.vmid, ""),
                }
                for vm in cluster.vms.values()
            ],
            "volumes": [{**asdict(one), "volid": one.volid} for one in cluster.volumes.all()],
            "ha": {
                "resources": [asdict(one) for one in cluster.ha.resources.values()],
                "rules": [asdict(one) for one in cluster.ha.rules.values()],
            },
            "pools": [asdict(pool) for pool in cluster.pools.values()],
            "locks": [
                {"name": lock.name, "holders": len(lock.holders), "waiters": len(lock.waiters)}
                for lock in cluster.locks()
            ],
            "tasks": [asdict(task) for task in cluster.tasks.active()],
            "faults": [fault.view() for fault in cluster.faults.orders.values()],
        }


#: the one call whose answer is no JSON
_VOLUME = ("GET", "volume")


class Control:
    """Answers `/_sim/…`. `cluster` in a body or query names the cluster; default: this port's."""

    def __init__(self, simulator: Resettable, recorder: Recorder) -> None:
        self._simulator = simulator
        self._recorder = recorder
        self._handlers: dict[tuple[str, str], Callable[[Entry, dict[str, Any]], Any]] = {
            ("GET", "state"): self._state,
            ("GET", "calls"): lambda entry, given: recorder.since(int(given.get("since", 0))),
            ("DELETE", "calls"): lambda entry, given: recorder.clear(),
            ("POST", "reset"): lambda entry, given: simulator.reset(),
            ("GET", "clock"): lambda entry, given: self._clock(),
            ("POST", "clock"): self._set_clock,
            ("POST", "history"): self._shift_history,
            ("GET", "faults"): lambda entry, given: [
                fault.view() for fault in self._cluster(entry, given).faults.orders.values()
            ],
            ("POST", "faults"): self._order,
            ("DELETE", "faults"): self._cancel,
            ("POST", "volume"): self._put_volume,
            ("POST", "write"): self._write,
            ("POST", "storage"): self._add_storage,
            ("POST", "task"): self._task,
            ("POST", "totp"): self._totp,
            ("POST", "config"): self._move_configs,
            ("DELETE", "config"): self._remove_config,
            ("POST", "leave"): self._leave,
            ("DELETE", "node"): self._remove_node,
        }

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Return what it answers: method and path."""
        return sorted((method, f"/_sim/{name}") for method, name in [*self._handlers, _VOLUME])

    def answer(self, entry: Entry, request: Request) -> Response:
        """Answer a control request."""
        parts = urlsplit(request.target)
        name = parts.path.removeprefix("/_sim/").strip("/")
        given: dict[str, Any] = {key: value[0] for key, value in parse_qs(parts.query).items()}
        raw = request.body.read(request.length) if request.length else b""
        try:
            if raw:
                given |= orjson.loads(raw)
            if (request.method, name) == _VOLUME:
                return self._volume(entry, given)
            handler = self._handlers.get((request.method, name))
            if handler is None:
                known = ", ".join(f"{method} {path}" for method, path in self.calls)
                return _json(404, {"error": f"no such door; there are {known}"})
            return _json(200, handler(entry, given))
        except (BadOrder, ValueError, KeyError, TypeError) as error:
            return _json(400, {"error": f"{type(error).__name__}: {error}"})

    def _cluster(self, entry: Entry, given: dict[str, Any]) -> Cluster:
        name = given.get("cluster")
        if not name:
            return entry.cluster
        return next(one for one in self._simulator.clusters if one.name == name)

    def _state(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        wanted = given.get("cluster")
        found = [one for one in self._simulator.clusters if wanted in (None, one.name)]
        return {"clusters": [state_of(one) for one in found], **self._clock()}

    def _clock(self) -> dict[str, Any]:
        clock = self._simulator.engine.clock
        return {"speed": clock.speed, "simulated_seconds": clock.now()}

    def _set_clock(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        if "speed" in given:
            speed = float(given["speed"])
            if not 0.001 <= speed <= 100_000:
                raise BadOrder("speed is between 0.001 and 100000")
            self._simulator.engine.set_speed(speed)
        if given.get("statistics"):
            for cluster in self._simulator.clusters:
                with cluster.turn():
                    cluster.stats_at = float("-inf")
        return self._clock()

    def _shift_history(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        cluster, vmid = self._cluster(entry, given), int(given["vmid"])
        with cluster.turn():
            spans = cluster.history.shift(vmid, float(given["seconds"]))
            cluster.save("history", str(vmid), spans)
        return {"spans": spans}

    def _order(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        cluster = self._cluster(entry, given)
        with cluster.turn():
            fault = cluster.faults.add(given)
            apply(cluster, fault)
            return fault.view()

    def _cancel(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        cluster = self._cluster(entry, given)
        with cluster.turn():
            if "id" in given:
                one = cluster.faults.remove(int(given["id"]))
                gone = [one] if one is not None else []
            else:
                gone = cluster.faults.clear()
            for fault in gone:
                undo(cluster, fault)
            return {"removed": [fault.id for fault in gone]}

    def _put_volume(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        """Put a volume on a storage that no configuration names."""
        cluster = self._cluster(entry, given)
        name = parse_volid(str(given["volid"]))
        with cluster.turn():
            node = str(given.get("node") or next(iter(cluster.nodes)))
            place = cluster.place(name.storage, node)
            size = int(given.get("size", 8 * MIB))
            volume = cluster.add_volume(
                Volume(
                    *place,
                    name.name,
                    content_of(name.name),
                    format_of(name.name),
                    size,
                    int(given.get("used", min(size, MIB))),
                    owner_of(name.name),
                    name.parent,
                    virtual_size=int(given.get("virtual_size", 0)),
                    ctime=int(given.get("ctime", time.time())),
                )
            )
            return {**asdict(volume), "volid": volume.volid}

    def _add_storage(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        """Add a storage for disks."""
        cluster = self._cluster(entry, given)
        with cluster.turn():
            shared = bool(given.get("shared", False))
            name, kind, more = str(given["name"]), str(given["type"]), given.get("options")
            return asdict(add_storage(cluster, name, kind, shared=shared, more=more))

    def _write(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        """Write to a volume, as a guest does."""
        cluster = self._cluster(entry, given)
        with cluster.turn():
            node = str(given.get("node") or next(iter(cluster.nodes)))
            volume = cluster.volume(str(given["volid"]), node)
            if volume is None:
                raise BadOrder(f"no volume {given['volid']} on {node}")
            volume.data = str(given["data"])
            return {**asdict(cluster.add_volume(volume)), "volid": volume.volid}

    def _volume(self, entry: Entry, given: dict[str, Any]) -> Response:
        cluster = self._cluster(entry, given)
        with cluster.turn():
            node = str(given.get("node") or next(iter(cluster.nodes)))
            volume = cluster.volume(str(given["volid"]), node)
            if volume is None:
                return _json(404, {"error": f"no volume {given['volid']} on {node}"})
            data = cluster.data.get(f"{volume.storage}/{volume.node}/{volume.name}")
            if data is None:
                return _json(404, {"error": "the bytes of this volume were not kept"})
            return Response(200, body=data, content_type="application/octet-stream")

    def _totp(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        """Give a user a second factor."""
        cluster = self._cluster(entry, given)
        with cluster.turn():
            secret = str(given["secret"])
            cluster.access.users[str(given["user"])].totp = bytes.fromhex(secret).hex()
            cluster.save_access()
            return {"user": given["user"]}

    def _move_configs(self, entry: Entry, given: dict[str, Any]) -> list[int]:
        """Move configurations to another node's folder, all or that of a VMID."""
        cluster = self._cluster(entry, given)
        vmid = int(given["vmid"]) if given.get("vmid") else None
        with cluster.turn():
            return pmxcfs.move(cluster, str(given["node"]), str(given["to"]), vmid)

    def _remove_config(self, entry: Entry, given: dict[str, Any]) -> None:
        cluster = self._cluster(entry, given)
        with cluster.turn():
            pmxcfs.remove(cluster, str(given["node"]), int(given["vmid"]))

    def _leave(self, entry: Entry, given: dict[str, Any]) -> None:
        cluster = self._cluster(entry, given)
        with cluster.turn():
            pmxcfs.leave(cluster, str(given["node"]))

    def _remove_node(self, entry: Entry, given: dict[str, Any]) -> None:
        cluster = self._cluster(entry, given)
        with cluster.turn():
            pmxcfs.remove_folder(cluster, str(given["node"]))

    def _task(self, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
        """Kill a running worker, or let it fail."""
        cluster, upid = self._cluster(entry, given), str(given["upid"])
        with cluster.turn():
            if given.get("action", "kill") == "kill":
                cluster.tasks.kill(upid)
            else:
                cluster.tasks.fail(upid, str(given.get("text", "simulated task failure")))
            return {"upid": upid, "running": upid in cluster.tasks.running}


def _json(status: int, body: Any) -> Response:
    reason = {200: "OK", 400: "Bad Request"}.get(status, "Not Found")
    return Response(status, reason, orjson.dumps(body))

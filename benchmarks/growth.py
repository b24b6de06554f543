"""Measure idle clouds and growing ones, as JSON: ``python -m benchmarks.growth``.

It starts an embedded cloud of N hosts without a hypervisor, creates S servers through the API,
and measures:

- publishing hosts to placement, from the first to the last,
- the CPU of a create,
- the share of one core, statements, requests and messages of an idle cloud,
- memory (PSS) of the processes,
- one audit: its time, CPU and requests to placement,
- the size of the databases, and of the indexes in them,
- deleting all the servers.

For each number of hosts it also starts a scheduler and placement as processes of their own, on
PostgreSQL and RabbitMQ, and measures a decision end to end and the memory of both; and an embedded
cloud with simulated clusters of at most 32 nodes each, at most 64 nodes in all, and measures the
requests that an idle cloud makes to Proxmox VE, by minute and cluster.

CPU seconds are of our processes, without Keystone and the client. Wall times depend on the other
load of the machine, which `load` shows. The exit code is 1 where a bound is passed. The default is
the whole matrix, which takes about two hours; ``--short`` runs its smallest corner.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import openstack.config
import openstack.connection

from benchmarks import cloud, decisions
from benchmarks.cloud import Client
from benchmarks.reading.counted import Counters
from benchmarks.reading.processes import memory_mib, own_cpu_seconds
from benchmarks.sites import Site, by_command, site_of
from common.process.child import ROOT, die_with_parent
from tests.fixtures import null

Size = TypeVar("Size")

PER_REQUEST = 500
"""Servers of one create."""
HOLDS = 200
"""Servers that a host without a hypervisor has room for."""
NODES_PER_CLUSTER = 32
"""Proxmox VE's practical limit."""
SIMULATED_CLUSTERS = 2
DECISIONS = 100

WAIT_SECONDS = 3600
STOP_SECONDS = 120
AUDIT_INTERVAL_SECONDS = 300
"""The default of [conductor] audit_interval_seconds: what one audit adds to standing still."""

IDLE_PERCENT = {(1000, 5000): 3.0, (10_000, 10_000): 4.0}
"""{(hosts, servers): share of one core at rest, audits included}; smaller clouds are bounded by
the next larger size."""
PLACEMENT_SECONDS = {1000: 1.0, 10_000: 5.0}
"""{hosts: seconds from the first one in placement to the last}."""
DELETE_SECONDS = {5000: 60.0}
"""{servers: seconds until the last one is gone}."""

_OFFERING = """
    SELECT count(*) FROM resource_providers AS p
    WHERE EXISTS (SELECT 1 FROM inventories WHERE provider_id = p.id)
      AND EXISTS (SELECT 1 FROM provider_traits WHERE provider_id = p.id)
"""


#: bytes of tables and of indexes
_PAGES = """
    SELECT coalesce(m.type, 'table') AS kind, sum(s.pgsize)
    FROM dbstat AS s LEFT JOIN sqlite_master AS m ON m.name = s.name GROUP BY kind
"""


@dataclass(frozen=True)
class Running:
    """A running cloud, and the figures of its start."""

    site: Site
    admin: Any
    counters: Counters
    start: dict[str, Any]


class Meter:
    """What is used between two readings."""

    def __init__(self, site: Site, counters: Counters) -> None:
        self._processes, self._counters = site.processes(), counters
        self._began, self._cpu = time.monotonic(), own_cpu_seconds(self._processes)
        self._counts = counters.read()

    def read(self) -> dict[str, Any]:
        """Return seconds, CPU seconds and counts since the beginning."""
        now = self._counters.read()
        return {
            "seconds": round(time.monotonic() - self._began, 2),
            "cpu_seconds": round(own_cpu_seconds(self._processes) - self._cpu, 2),
            **{name: value - self._counts[name] for name, value in now.items()},
        }


@contextlib.contextmanager
def running(folder: Path, hosts: int, clusters: int = 0) -> Iterator[Running]:
    """Run an embedded cloud until the block ends: without a hypervisor, or of so many simulated
    clusters."""
    counters = Counters(folder / "counters", create=True)
    state = folder / "state"
    command = [sys.executable, "-m", "benchmarks.reading.counted", str(folder / "counters"), "up"]
    command += ["--state-dir", str(state), "--port", "0"]
    if clusters:
        command += ["--nodes", str(hosts // clusters), "--clusters", str(clusters)]
    else:
        command += ["--driver", null.DRIVER, "--nodes", str(hosts)]
    began = time.monotonic()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        | {null.HOSTS: str(hosts)},
        cwd=ROOT,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509
    ) as process:
        up = threading.Event()
        output: list[str] = []
        reader = threading.Thread(target=_read, args=(process, output, up), daemon=True)
        reader.start()
        try:
            start = _publishing(state, hosts, process, up)
            up.wait(WAIT_SECONDS)
            if not any(map(_is_up, output)):
                raise RuntimeError(f"not up: {''.join(output)}")
            start["up_seconds"] = round(time.monotonic() - began, 2)
            admin = _connection(state, "micronova")
            site = site_of(lambda name: _connection(state, name), lambda: by_command(process.pid))
            yield Running(site, admin, counters, start)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
            reader.join()


def _read(process: subprocess.Popen[str], output: list[str], up: threading.Event) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        output.append(line)
        if _is_up(line):
            up.set()
    up.set()  # over, if it wasn't


def _is_up(line: str) -> bool:
    return line.startswith("Ctrl-C stops the cloud")


def _connection(state: Path, name: str) -> Any:
    config = openstack.config.OpenStackConfig(
        config_files=[str(state / "clouds.yaml")], load_envvars=False
    )
    return openstack.connection.Connection(config=config.get_one(name))


def _publishing(
    state: Path, hosts: int, process: subprocess.Popen[str], up: threading.Event
) -> dict[str, Any]:
    """Return seconds and CPU seconds from the first host in placement to the last."""
    path = state / "placement.sqlite"
    first: tuple[float, float] | None = None
    pause = threading.Event()
    while not up.is_set() and process.poll() is None:
        offering = _offering(path)
        if offering:
            now = time.monotonic(), own_cpu_seconds(by_command(process.pid))
            first = first or now
            if offering >= hosts:
                return {
                    "placement_seconds": round(now[0] - first[0], 2),
                    "placement_cpu_seconds": round(now[1] - first[1], 2),
                }
        pause.wait(0.05 if hosts <= 1000 else 0.5)
    return {}


def _offering(path: Path) -> int:
    """Return how many hosts have inventory and traits in placement; 0 before there is one."""
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        try:
            return int(database.execute(_OFFERING).fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def idle(found: Running, seconds: float) -> dict[str, Any]:
    """Measure an idle cloud, between two audits."""
    meter = Meter(found.site, found.counters)
    threading.Event().wait(seconds)
    used = meter.read()
    per_second = {
        f"{name}_per_second": round(used[name] / used["seconds"], 2)
        for name in used
        if not name.endswith("seconds")
    }
    percent = used["cpu_seconds"] / used["seconds"] * 100
    return {"seconds": used["seconds"], "percent_of_a_core": round(percent, 2), **per_second}


def audit(found: Running) -> dict[str, Any]:
    """Measure one audit, with the time until it is quiet again."""
    compute = found.admin.compute
    accepted: list[int] = []

    def begun() -> bool:
        answer = compute.post("/audits")  # a conductor that has just started may be busy
        if answer.status_code == 202:
            accepted.append(answer.json()["audit"]["id"])
        return bool(accepted)

    cloud.wait(begun, 5, WAIT_SECONDS)
    meter = Meter(found.site, found.counters)
    state: dict[str, Any] = {}

    def ended() -> bool:
        state.update(compute.get(f"/audits/{accepted[0]}").json()["audit"])
        return state["state"] in {"done", "failed"}

    cloud.wait(ended, 0.5, WAIT_SECONDS)
    report = state.get("report") or {}
    return {"state": state["state"], "complete": report.get("complete"), **meter.read()}


def create(found: Running, servers: int) -> dict[str, Any]:
    """Create servers by several requests; return what that took."""
    meter = Meter(found.site, found.counters)
    client = Client(found.site)
    for start in range(0, servers, PER_REQUEST):
        number = min(PER_REQUEST, servers - start)
        client.create(f"grown-{start}", number)
        cloud.wait(lambda: not client.exist("BUILD"), 0.5, WAIT_SECONDS)
    used = meter.read()
    cpu = round(used["cpu_seconds"] / servers * 1000, 2)
    return {"active": len(client.servers("ACTIVE")), "cpu_ms_each": cpu, **used}


def delete(found: Running) -> dict[str, Any]:
    """Delete all servers by 8 clients; return what that took until none is left."""
    clients = [Client(found.site) for _ in range(cloud.CLIENTS)]
    names = clients[0].servers()
    meter = Meter(found.site, found.counters)
    with ThreadPoolExecutor(cloud.CLIENTS) as pool:
        list(
            pool.map(
                lambda each: clients[each[0] % cloud.CLIENTS].delete(each[1]), enumerate(names)
            )
        )
    accepted = meter.read()["seconds"]
    cloud.wait(lambda: not clients[0].get("/servers?limit=1")["servers"], 0.25, WAIT_SECONDS)
    return {"servers": len(names), "accepted_seconds": accepted, **meter.read()}


def measure(folder: Path, hosts: int, servers: int, idle_seconds: float) -> dict[str, Any]:
    """Return all figures of one size; each part is also printed on stderr."""
    found: dict[str, Any] = {"hosts": hosts, "servers": servers}

    def keep(name: str, value: Any) -> None:
        found[name] = value
        sys.stderr.write(f"{hosts} hosts, {servers} servers: {name} {json.dumps(value)}\n")

    with running(folder, hosts) as cloud_:
        keep("start", cloud_.start)
        if servers:
            keep("create", create(cloud_, servers))
        keep("audit", audit(cloud_))
        quiet = idle(cloud_, idle_seconds)
        audits = found["audit"]["cpu_seconds"] / AUDIT_INTERVAL_SECONDS * 100
        with_audits = round(quiet["percent_of_a_core"] + audits, 2)
        keep("idle", {**quiet, "percent_with_audits": with_audits})
        keep("pss_mib", memory_mib(cloud_.site.processes()))
        keep("databases", databases(folder / "state"))
        if servers:
            keep("delete", delete(cloud_))
    return found


def databases(state: Path) -> dict[str, dict[str, float]]:
    """Return MiB of each database of an embedded cloud, and of that the indexes."""
    found = {}
    for name in ("cloud", "placement"):
        path = state / f"{name}.sqlite"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            rows = database.execute(_PAGES).fetchall()
        sizes = {kind: round(size / 2**20, 2) for kind, size in rows}
        found[name] = {
            "mib": round(sum(sizes.values()), 2),
            "indexes_mib": sizes.get("index", 0.0),
        }
    return found


def decision(hosts: int, count: int) -> dict[str, Any]:
    """Measure decisions by a scheduler and a placement of their own; return time, CPU, memory."""
    with (
        decisions.backing() as backed,
        decisions.schedulers(backed, hosts, 1) as (made, client),
    ):
        found = decisions.one_by_one(made, client, count)
        return found | {"memory_mib": made.memory_mib()}


def proxmox(folder: Path, hosts: int, seconds: float) -> dict[str, Any]:
    """Count the requests that an idle cloud makes to its simulated clusters."""
    clusters = min(math.ceil(hosts / NODES_PER_CLUSTER), SIMULATED_CLUSTERS)
    nodes = min(hosts // clusters, NODES_PER_CLUSTER)
    with running(folder, nodes * clusters, clusters) as cloud_:
        quiet = idle(cloud_, seconds)
    per_minute = quiet["proxmox_requests_per_second"] * 60 / clusters
    return {
        "clusters": clusters,
        "nodes_of_each": nodes,
        "requests_per_minute_and_cluster": round(per_minute, 1),
        "percent_of_a_core": quiet["percent_of_a_core"],
    }


def passed(found: dict[str, Any]) -> list[str]:
    """Return the bounds that a size passes, as text."""
    hosts, servers = found["hosts"], found["servers"]
    values = {
        "idle, percent of a core": (
            found["idle"]["percent_with_audits"],
            _bound(IDLE_PERCENT, lambda size: hosts <= size[0] and servers <= size[1]),
        ),
        "placement, seconds": (
            found["start"].get("placement_seconds"),
            _bound(PLACEMENT_SECONDS, lambda most: hosts <= most),
        ),
        "delete, seconds": (
            found.get("delete", {}).get("seconds"),
            _bound(DELETE_SECONDS, lambda most: servers <= most),
        ),
    }
    return [
        f"{hosts} hosts, {servers} servers: {name}: {value}, {most} allowed"
        for name, (value, most) in values.items()
        if value is not None and most is not None and value > most
    ]


def _bound(bounds: Mapping[Size, float], holds: Callable[[Size], bool]) -> float | None:
    """Return the tightest bound that holds for a size."""
    return min((most for size, most in bounds.items() if holds(size)), default=None)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description=__doc__.split("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    parser.add_argument("--servers", type=int, nargs="+", default=[0, 1000, 10_000])
    parser.add_argument("--idle-seconds", type=float, default=60)
    parser.add_argument("--decisions", type=int, default=DECISIONS)
    parser.add_argument("--short", action="store_true", help="2 hosts with 2 servers")
    given = parser.parse_args(arguments)
    if given.short:
        given.hosts, given.servers, given.idle_seconds, given.decisions = [2], [2], 1.0, 2
    report: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "decisions": {},
        "proxmox": {},
        "sizes": [],
        "no_room": [],
        "passed_bounds": [],
    }
    for hosts in given.hosts:
        report["decisions"][hosts] = decision(hosts, given.decisions)
        with _folder() as folder:
            report["proxmox"][hosts] = proxmox(folder, hosts, given.idle_seconds)
        for servers in given.servers:
            if servers > hosts * HOLDS:
                report["no_room"].append({"hosts": hosts, "servers": servers})
                continue
            with _folder() as folder:
                one = measure(folder, hosts, servers, given.idle_seconds)
            report["sizes"].append({**one, "load": round(os.getloadavg()[0], 1)})
            report["passed_bounds"] += passed(one)
    json.dump(report, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 1 if report["passed_bounds"] else 0


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="micronova-growth-") as name:
        yield Path(name)


if __name__ == "__main__":
    sys.exit(main())

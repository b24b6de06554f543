"""Measure idle clouds and growing ones, as JSON: ``python -m benchmarks.growth``.

It starts an embedded cloud of N hosts without a hypervisor, creates S servers through the API,
and measures:

- publishing hosts to placement, from the first to the last,
- the share of one core, statements, requests and messages of an idle cloud,
- memory (PSS) of the processes,
- one audit: its time, CPU and requests to placement,
- deleting all the servers.

CPU seconds are of our processes, without Keystone and the client. Wall times depend on the other
load of the machine, which `load` shows. The exit code is 1 where a bound is passed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
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

from benchmarks import cloud
from benchmarks.cloud import Client
from benchmarks.counted import Counters
from benchmarks.processes import memory_mib, own_cpu_seconds
from benchmarks.sites import Site, by_command, site_of
from common.process.child import ROOT, die_with_parent
from tests.fixtures import null

Size = TypeVar("Size")

PER_REQUEST = 500
"""Servers of one create."""

WAIT_SECONDS = 3600
STOP_SECONDS = 120
AUDIT_INTERVAL_SECONDS = 300
"""The default of [conductor] audit_interval_seconds: what one audit adds to standing still."""

IDLE_PERCENT = {(100, 1000): 3.0, (1000, 5000): 6.0}
"""{(hosts, servers): share of one core at rest, audits included}; smaller clouds are bounded by
the next larger size."""
PLACEMENT_SECONDS = {1000: 5.0, 10_000: 60.0}
"""{hosts: seconds from the first one in placement to the last}."""
DELETE_SECONDS = {5000: 60.0}
"""{servers: seconds until the last one is gone}."""

_OFFERING = """
    SELECT count(*) FROM resource_providers AS p
    WHERE EXISTS (SELECT 1 FROM inventories WHERE provider_id = p.id)
      AND EXISTS (SELECT 1 FROM provider_traits WHERE provider_id = p.id)
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
def running(folder: Path, hosts: int) -> Iterator[Running]:
    """Run an embedded cloud without a hypervisor until the block ends."""
    counters = Counters(folder / "counters", create=True)
    state = folder / "state"
    command = [sys.executable, "-m", "benchmarks.counted", str(folder / "counters"), "up"]
    command += ["--state-dir", str(state), "--port", "0", "--driver", null.DRIVER]
    command += ["--nodes", str(hosts)]
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
    return {"active": len(client.servers("ACTIVE")), **meter.read()}


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
        if servers:
            keep("delete", delete(cloud_))
    return found


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
    parser.add_argument("--hosts", type=int, nargs="+", default=[3, 100, 1000])
    parser.add_argument("--servers", type=int, nargs="+", default=[0, 1000, 5000])
    parser.add_argument("--idle-seconds", type=float, default=60)
    given = parser.parse_args(arguments)
    sizes = [(hosts, servers) for hosts in given.hosts for servers in given.servers]
    found = []
    for hosts, servers in sizes:
        with tempfile.TemporaryDirectory(prefix="micronova-growth-") as name:
            found.append(measure(Path(name), hosts, servers, given.idle_seconds))
            found[-1]["load"] = round(os.getloadavg()[0], 1)
    beyond = [line for one in found for line in passed(one)]
    report = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "sizes": found,
        "passed_bounds": beyond,
    }
    json.dump(report, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())

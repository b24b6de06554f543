"""Measure what the control plane costs, as JSON: ``python -m benchmarks.cloud --help``.

It starts a cloud, embedded or of separate processes on PostgreSQL and RabbitMQ, is its client over
HTTP, and measures:

- single servers, one after the other: the time from create to ACTIVE, polled each 10 ms, and the
  CPU time of create, polls and delete by a client that polls each 50 ms,
- servers that 8 clients create at once, and their end,
- servers of one request with `min_count`: the first and the last ACTIVE,
- the time and the CPU time of `/servers` and `/servers/detail` with many servers, and of one,
- memory (PSS) of each service, at the start and the end. What is redundant of our own services,
  two of each, must fit into 600 MiB at the start, else the exit code is 1.

CPU is split by service, database and broker included; Keystone, simulator and the client itself,
which is this process, aren't counted. `--statements` counts PostgreSQL's statements as well,
which costs a little itself.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from benchmarks.reading.processes import NOT_COUNTED, cpu_seconds, memory_mib
from benchmarks.reading.statements import Counts, summary
from benchmarks.sites import SITES, Site, Wanted

CLIENTS = 8
WAIT_SECONDS = 300
POLL_SECONDS = 0.05
"""Between two polls of a client that pays for them."""
CLOSE_POLL_SECONDS = 0.01
"""Between two polls where a time is measured."""
LOOK_SECONDS = 0.1
WARM_ROUNDS = 25
"""Requests until the connections of both workers have planned their statement for good."""
OWN_PSS_MIB = 600
"""What two of each of our own services may take when nobody asks for anything."""

NOT_OURS = NOT_COUNTED | {"postgresql", "rabbitmq"}


class Client:
    """One client: a kept connection and a token."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["X-Auth-Token"] = site.token

    def create(self, name: str, servers: int = 1) -> str:
        """Create servers; return the ID of the first."""
        server = {
            "name": name,
            "flavorRef": self._site.flavor,
            "imageRef": self._site.image,
            "networks": [{"uuid": self._site.network}],
        }
        count = {"min_count": servers, "max_count": servers} if servers > 1 else {}
        answer = self._session.post(
            f"{self._site.base_url}/servers", json={"server": server | count}, timeout=300
        )
        answer.raise_for_status()
        return str(answer.json()["server"]["id"])

    def get(self, path: str) -> Any:
        """Return an answer's JSON."""
        answer = self._session.get(f"{self._site.base_url}{path}", timeout=60)
        answer.raise_for_status()
        return answer.json()

    def delete(self, server: str) -> None:
        """Delete a server."""
        answer = self._session.delete(f"{self._site.base_url}/servers/{server}", timeout=60)
        answer.raise_for_status()

    def status(self, server: str) -> str:
        """Return the status, GONE when there is none."""
        answer = self._session.get(f"{self._site.base_url}/servers/{server}", timeout=60)
        return "GONE" if answer.status_code == 404 else str(answer.json()["server"]["status"])

    def wait_for(self, server: str, status: str, pause_seconds: float = POLL_SECONDS) -> None:
        """Return when the server has the status. Raises RuntimeError if it is in ERROR."""

        def has_it() -> bool:
            found = self.status(server)
            if found == "ERROR":
                raise RuntimeError(f"server {server} is in ERROR")
            return found == status

        wait(has_it, pause_seconds)

    def servers(self, status: str | None = None) -> list[str]:
        """Return the IDs of all servers, or of those with the status."""
        path = "/servers?limit=1000" + (f"&status={status}" if status else "")
        page = self.get(path)["servers"]
        found = [str(one["id"]) for one in page]
        while len(page) == 1000:
            page = self.get(f"{path}&marker={page[-1]['id']}")["servers"]
            found += [str(one["id"]) for one in page]
        return found

    def exist(self, status: str | None = None) -> bool:
        """Return whether there are servers, or some with the status."""
        return bool(
            self.get("/servers?limit=1" + (f"&status={status}" if status else ""))["servers"]
        )


def wait(check: Callable[[], bool], pause_seconds: float, seconds: float = WAIT_SECONDS) -> None:
    """Return when the check holds."""
    pause, deadline = threading.Event(), time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError("the cloud did not settle")
        pause.wait(pause_seconds)


class Meter:
    """What is used from now on: time, CPU by service, statements by service."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.restart()

    def restart(self) -> None:
        """Count from here."""
        self._cpu, self._statements = cpu_seconds(self._site.processes()), self._counts()
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._began

    def cpu_ms(self, servers: int) -> dict[str, float]:
        """Return CPU milliseconds for each server, or request, by service, and their `sum`."""
        now = cpu_seconds(self._site.processes())
        used = {
            name: (now[name] - self._cpu[name]) / servers * 1000
            for name in sorted(now)
            if name not in NOT_COUNTED
        }
        return {
            name: round(value, 1) for name, value in {**used, "sum": sum(used.values())}.items()
        }

    def read(self, servers: int) -> dict[str, Any]:
        """Return CPU milliseconds and, where counted, statements for each server."""
        found: dict[str, Any] = {"cpu_ms": self.cpu_ms(servers)}
        if self._site.statements is not None:
            found["statements"] = summary(self._statements, self._counts(), servers)
        return found

    def _counts(self) -> Counts:
        return {} if self._site.statements is None else self._site.statements.counts()


def one_by_one(site: Site, servers: int) -> dict[str, Any]:
    """Measure single servers: milliseconds from create to ACTIVE, and what they cost."""
    client = Client(site)
    taken = sorted(_life(client, f"timed-{n}", CLOSE_POLL_SECONDS) for n in range(servers))
    meter = Meter(site)
    for number in range(servers):
        _life(client, f"single-{number}", POLL_SECONDS)
    return {
        "servers": servers,
        "p50_ms": round(statistics.median(taken), 1),
        "p95_ms": round(taken[int(len(taken) * 0.95) - 1], 1),
        "create_poll_delete": meter.read(servers),
    }


def _life(client: Client, name: str, pause_seconds: float) -> float:
    """Create a server, and delete it; return the milliseconds until it was ACTIVE."""
    began = time.monotonic()
    server = client.create(name)
    client.wait_for(server, "ACTIVE", pause_seconds)
    taken = (time.monotonic() - began) * 1000
    client.delete(server)
    client.wait_for(server, "GONE", pause_seconds)
    return taken


def at_once(site: Site, servers: int) -> dict[str, Any]:
    """Measure servers that clients create at once, and their end."""
    clients = [Client(site) for _ in range(CLIENTS)]
    meter = Meter(site)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda n: clients[n % CLIENTS].create(f"many-{n}"), range(servers)))
        accepted = meter.seconds
        wait(lambda: not clients[0].exist("BUILD"), LOOK_SECONDS)
    built, create = meter.seconds, meter.read(servers)
    active = len(clients[0].servers("ACTIVE"))
    return {
        "servers": servers,
        "active": active,
        "accepted_per_second": round(servers / accepted, 1),
        "active_per_second": round(active / built, 1),
        "create": create,
        **delete_all(site),
    }


def in_one_request(site: Site, servers: int) -> dict[str, Any]:
    """Measure servers of one request with `min_count`."""
    client, meter = Client(site), Meter(site)
    client.create("one-of-many", servers)
    wait(lambda: client.exist("ACTIVE"), CLOSE_POLL_SECONDS)
    first = meter.seconds
    wait(lambda: not client.exist("BUILD"), LOOK_SECONDS)
    return {
        "servers": servers,
        "active": len(client.servers("ACTIVE")),
        "first_active_seconds": round(first, 2),
        "all_active_seconds": round(meter.seconds, 2),
        "create": meter.read(servers),
        **delete_all(site),
    }


def delete_all(site: Site) -> dict[str, Any]:
    """Delete every server by all clients at once, and measure it."""
    clients = [Client(site) for _ in range(CLIENTS)]
    there = clients[0].servers()
    meter = Meter(site)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda n: clients[n % CLIENTS].delete(there[n]), range(len(there))))
        wait(lambda: not clients[0].exist(), LOOK_SECONDS)
    seconds = meter.seconds
    return {
        "deleted_per_second": round(len(there) / seconds, 1),
        "delete": meter.read(len(there)),
    }


def lists(site: Site, servers: int) -> dict[str, Any]:
    """Measure long lists, and one server, in milliseconds."""
    clients = [Client(site) for _ in range(CLIENTS)]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        made = list(pool.map(lambda n: clients[n % CLIENTS].create(f"list-{n}"), range(servers)))
    wait(lambda: not clients[0].exist("BUILD"), LOOK_SECONDS)
    found: dict[str, Any] = {"servers": servers}
    for name, path, rounds in (
        ("list", "/servers?limit=1000", 30),
        ("detail", "/servers/detail?limit=1000", 30),
        ("show", f"/servers/{made[0]}", 300),
    ):
        for _ in range(WARM_ROUNDS):
            clients[0].get(path)
        taken, meter = [], Meter(site)
        for _ in range(rounds):
            began = time.monotonic()
            clients[0].get(path)
            taken.append((time.monotonic() - began) * 1000)
        found[f"{name}_p50_ms"] = round(statistics.median(taken), 1)
        found[f"{name}_cpu_ms"] = meter.cpu_ms(rounds)
    return found | delete_all(site)


def measure(site: Site, single: int, many: int, listed: int, warm: int) -> dict[str, Any]:
    """Return all figures of a cloud."""
    memory = memory_mib(site.processes())
    own = sum(mib for name, mib in memory.items() if name not in NOT_OURS)
    found: dict[str, Any] = {"idle_pss_mib": memory, "own_idle_pss_mib": round(own, 1)}
    if warm:
        at_once(site, warm)
    if single:
        found["one_by_one"] = one_by_one(site, single)
    if many:
        found["at_once"] = at_once(site, many)
        found["in_one_request"] = in_one_request(site, many)
    if listed:
        found["lists"] = lists(site, listed)
    found["pss_mib_after"] = memory_mib(site.processes())
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.cloud", description=__doc__.split("\n")[0])
    parser.add_argument("--cloud", choices=sorted(SITES), default="embedded")
    parser.add_argument(
        "--driver", choices=("null", "proxmox"), default="null", help="proxmox: the simulator"
    )
    parser.add_argument("--hosts", type=int, default=8, help="hosts without a hypervisor")
    parser.add_argument("--single", type=int, default=30, help="servers created one by one")
    parser.add_argument("--many", type=int, default=100, help="servers created at once")
    parser.add_argument(
        "--listed", type=int, default=1000, help="servers in the long lists; 0: no"
    )
    parser.add_argument("--warm", type=int, default=20, help="servers before anything is measured")
    parser.add_argument("--statements", action="store_true", help="count PostgreSQL's statements")
    parser.add_argument(
        "--compact",
        action="store_true",
        help="as few separate processes as can be: conductors with schedulers of their own, one "
        "process for every API",
    )
    given = parser.parse_args(arguments)
    wanted = Wanted(given.driver, given.hosts, given.statements, given.compact)
    with (
        tempfile.TemporaryDirectory(prefix="micronova-bench-") as folder,
        SITES[given.cloud](Path(folder), wanted) as site,
    ):
        found = measure(site, given.single, given.many, given.listed, given.warm)
    about = {
        "cloud": given.cloud,
        "driver": given.driver,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    json.dump(about | found, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0 if found["own_idle_pss_mib"] <= OWN_PSS_MIB else 1


if __name__ == "__main__":
    sys.exit(main())

"""What the control plane costs, as JSON: ``python -m benchmarks.cloud --help``.

It starts an embedded cloud without a hypervisor (or all the services as separate processes), is
its client over HTTP, and measures:

- create → ACTIVE of single servers, one after the other (p50, p95),
- how many become ACTIVE in a second when 8 clients create at once,
- CPU time of all our processes for each create and delete,
- idle memory (PSS) of each process,
- the time of `/servers` and `/servers/detail` with many servers.

The client itself runs in this process and is not counted; databases, broker and Keystone apart.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

CLIENTS = 8
WAIT_SECONDS = 300
POLL_SECONDS = 0.01
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Site:
    """A running cloud: where it is, and its processes."""

    base_url: str
    token: str
    flavor: str
    image: str
    network: str
    processes: Callable[[], dict[str, list[int]]]
    """Returns {service: process IDs}; `keystone` is told apart."""


class Client:
    """One client: a kept connection and a token."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["X-Auth-Token"] = site.token

    def create(self, name: str) -> str:
        """Ask for a server; return its ID."""
        return self._create({"name": name})

    def create_many(self, name: str, number: int) -> None:
        """Ask for many servers in one request."""
        self._create({"name": name, "min_count": number})

    def _create(self, more: Mapping[str, Any]) -> str:
        body = {
            "server": {
                "flavorRef": self._site.flavor,
                "imageRef": self._site.image,
                "networks": [{"uuid": self._site.network}],
                **more,
            }
        }
        answer = self._session.post(f"{self._site.base_url}/servers", json=body, timeout=300)
        answer.raise_for_status()
        return str(answer.json()["server"]["id"])

    def get(self, path: str) -> Any:
        """Return an answer's JSON."""
        answer = self._session.get(f"{self._site.base_url}{path}", timeout=60)
        answer.raise_for_status()
        return answer.json()

    def delete(self, server: str) -> None:
        """Ask for the end of a server."""
        answer = self._session.delete(f"{self._site.base_url}/servers/{server}", timeout=60)
        answer.raise_for_status()

    def status(self, server: str) -> str:
        """Return the status, GONE when there is none."""
        answer = self._session.get(f"{self._site.base_url}/servers/{server}", timeout=60)
        return "GONE" if answer.status_code == 404 else str(answer.json()["server"]["status"])

    def wait_for(self, server: str, status: str) -> None:
        """Return when the server has the status."""
        wait(lambda: self.status(server) == status, POLL_SECONDS)

    def count(self, status: str) -> int:
        """Return how many servers have the status."""
        return len(self.servers(f"&status={status}"))

    def servers(self, query: str = "") -> list[str]:
        """Return the IDs of all servers, or of those that a query names."""
        found: list[str] = []
        marker = ""
        while True:
            page = self.get(f"/servers?limit=1000{query}{marker}")["servers"]
            found += [one["id"] for one in page]
            if len(page) < 1000:
                return found
            marker = f"&marker={found[-1]}"


def wait(check: Callable[[], bool], pause_seconds: float, seconds: float = WAIT_SECONDS) -> None:
    """Return when the check holds."""
    pause, deadline = threading.Event(), time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError("the cloud did not settle")
        pause.wait(pause_seconds)


def cpu_seconds(processes: Mapping[str, list[int]]) -> float:
    """Return the CPU time that our processes have used; Keystone apart."""
    total = 0.0
    for name, pids in processes.items():
        for pid in pids if name != "keystone" else ():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / _TICK
    return total


def pss_mib(pid: int) -> float:
    """Return the proportional set size of a process in MiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def memory(processes: Mapping[str, list[int]]) -> dict[str, float]:
    """Return MiB by service, and the sum without Keystone."""
    found = {name: round(sum(map(pss_mib, pids)), 1) for name, pids in processes.items()}
    found["all_but_keystone"] = round(
        sum(value for name, value in found.items() if name != "keystone"), 1
    )
    return found


def one_by_one(client: Client, servers: int) -> dict[str, float]:
    """Measure create → ACTIVE of single servers, in milliseconds."""
    taken = []
    for number in range(servers):
        began = time.monotonic()
        server = client.create(f"single-{number}")
        client.wait_for(server, "ACTIVE")
        taken.append((time.monotonic() - began) * 1000)
        client.delete(server)
        client.wait_for(server, "GONE")
    taken.sort()
    return {
        "p50_ms": round(statistics.median(taken), 1),
        "p95_ms": round(taken[int(len(taken) * 0.95) - 1], 1),
    }


def at_once(site: Site, servers: int) -> dict[str, float]:
    """Create many by 8 clients, then delete them all; returns rates and CPU for each."""
    clients = [Client(site) for _ in range(CLIENTS)]
    processes = site.processes()
    before, began = cpu_seconds(processes), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        made = list(
            pool.map(
                lambda number: clients[number % CLIENTS].create(f"many-{number}"), range(servers)
            )
        )
        accepted = time.monotonic()
        wait(lambda: clients[0].count("BUILD") == 0, 0.1)
        active = clients[0].count("ACTIVE")
        built, cpu_built = time.monotonic(), cpu_seconds(processes)
        list(
            pool.map(lambda number: clients[number % CLIENTS].delete(made[number]), range(servers))
        )
        wait(lambda: not clients[0].get("/servers?limit=1")["servers"], 0.1)
    gone, cpu_gone = time.monotonic(), cpu_seconds(processes)
    return {
        "servers": servers,
        "active": active,
        "accepted_per_second": round(servers / (accepted - began), 1),
        "active_per_second": round(active / (built - began), 1),
        "deleted_per_second": round(servers / (gone - built), 1),
        "cpu_ms_per_create": round((cpu_built - before) / servers * 1000, 1),
        "cpu_ms_per_create_and_delete": round((cpu_gone - before) / servers * 1000, 1),
    }


def lists(site: Site, servers: int, rounds: int = 20) -> dict[str, Any]:
    """Measure long lists, in milliseconds."""
    clients = [Client(site) for _ in range(CLIENTS)]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        made = list(
            pool.map(
                lambda number: clients[number % CLIENTS].create(f"list-{number}"), range(servers)
            )
        )
        wait(lambda: clients[0].count("BUILD") == 0, 0.2)
        found: dict[str, Any] = {"servers": servers}
        for name, path in (
            ("list", "/servers?limit=1000"),
            ("detail", "/servers/detail?limit=1000"),
            ("show", f"/servers/{made[0]}"),
        ):
            taken = []
            for _ in range(rounds):
                began = time.monotonic()
                clients[0].get(path)
                taken.append((time.monotonic() - began) * 1000)
            found[f"{name}_p50_ms"] = round(statistics.median(taken), 1)
        list(
            pool.map(lambda number: clients[number % CLIENTS].delete(made[number]), range(servers))
        )
        wait(lambda: not clients[0].get("/servers?limit=1")["servers"], 0.2)
    return found


@contextlib.contextmanager
def embedded(folder: Path, hosts: int) -> Iterator[Site]:
    """Run the embedded cloud without a hypervisor."""
    from tests.functional.cloud import embedded_cloud

    began = time.monotonic()
    with embedded_cloud(folder, audited=False, driver="null", nodes=hosts) as cloud:
        sys.stderr.write(f"up after {time.monotonic() - began:.1f} s\n")
        yield _site(cloud.connection, lambda: _tree(cloud.process.pid))


@contextlib.contextmanager
def distributed(folder: Path, hosts: int) -> Iterator[Site]:
    """Run all services as separate processes, on PostgreSQL and RabbitMQ and the simulator."""
    from tests.functional.distributed import distributed_cloud

    with distributed_cloud(folder, audited=False) as cloud:

        def processes() -> dict[str, list[int]]:
            ours = {name: one for name, one in cloud.children.items() if name != "simulator"}
            return {
                name: [child.pid, *_children(child.pid)]
                for name, child in ours.items()
                if child.pid is not None
            }

        yield _site(cloud.connection, processes)


def _site(connect: Callable[[str], Any], processes: Callable[[], dict[str, list[int]]]) -> Site:
    admin = connect("micronova")
    unlimited = dict.fromkeys(("instances", "cores", "ram"), -1)
    project = admin.current_project_id
    admin.compute.put(f"/os-quota-sets/{project}", json={"quota_set": unlimited})
    images = sorted(admin.image.images(), key=lambda one: (one.size or 0, one.name))
    return Site(
        base_url=admin.compute.get_endpoint(),
        token=admin.session.get_token(),
        flavor=admin.compute.find_flavor("m1.nano", ignore_missing=False).id,
        image=images[0].id,
        network=admin.network.find_network("vmbr0", ignore_missing=False).id,
        processes=processes,
    )


def _children(pid: int) -> list[int]:
    """Return a process's descendants."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *_children(child)]
    return found


def _tree(pid: int) -> dict[str, list[int]]:
    """Return the processes of `micronova up` by what they are."""
    found: dict[str, list[int]] = {"supervisor": [pid]}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        line = Path(f"/proc/{child}/cmdline").read_text()
        name = "cloud" if "cloud" in line else "keystone"
        found[name] = [int(child), *_children(int(child))]
    return found


SITES = {"embedded": embedded, "distributed": distributed}


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.cloud", description=__doc__.split("\n")[0])
    parser.add_argument("--cloud", choices=sorted(SITES), default="embedded")
    parser.add_argument("--hosts", type=int, default=8, help="made-up hosts (embedded only)")
    parser.add_argument("--single", type=int, default=30, help="servers created one by one")
    parser.add_argument("--many", type=int, default=200, help="servers created at once")
    parser.add_argument(
        "--listed", type=int, default=1000, help="servers in the long lists; 0: no"
    )
    given = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="micronova-bench-") as name,
        SITES[given.cloud](Path(name), given.hosts) as site,
    ):
        client = Client(site)
        found: dict[str, Any] = {
            "cloud": given.cloud,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "idle_pss_mib": memory(site.processes()),
        }
        found["one_by_one"] = one_by_one(client, given.single)
        found["at_once"] = at_once(site, given.many)
        if given.listed:
            found["lists"] = lists(site, given.listed)
        found["pss_mib_after"] = memory(site.processes())
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

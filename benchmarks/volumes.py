"""Measure what volumes cost the control plane, as JSON: ``python -m benchmarks.volumes``.

It starts a cloud without hypervisors (the null driver), builds a server for each of 8 clients, and
lets the clients create volumes, attach them, detach them and delete them over HTTP. CPU is that of
all services, database and broker, for each volume; `--statements` counts PostgreSQL's statements
too (separate services). The polls that wait for the end are part of it: a list each 0.1 s. The
exit code is 1 if a bound is passed, or if anything of a volume is left.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from benchmarks.cloud import CLIENTS, LOOK_SECONDS, Client, Meter, delete_all, wait
from benchmarks.sites import SITES, Site, Wanted

TIMEOUT_SECONDS = 60
#: CPU milliseconds of a volume's creation with its deletion, and of its attachment with its end
LIFE_MS, PLUG_MS = 40, 30
#: clients attach to a server of their own, which has slots for this many volumes
MOST_ON_A_SERVER = 20
HEADERS = {"OpenStack-API-Version": "volume 3.71, compute 2.104"}


class Volumes:
    """What clients ask for; each call has a connection of its client's own."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sessions = [self._session() for _ in range(CLIENTS)]

    def _session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.headers.update({"X-Auth-Token": self._site.token, **HEADERS})
        return session

    def request(self, client: int, method: str, url: str, body: Any = None) -> Any:
        """Send one request of a client, return its JSON. Raises RuntimeError if it is refused."""
        session = self._sessions[client % CLIENTS]
        answer = session.request(method, url, json=body, timeout=TIMEOUT_SECONDS)
        if not answer.ok:
            raise RuntimeError(f"{method} {url}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def unlimited(self) -> None:
        """Lift the project's quota of volumes."""
        values = dict.fromkeys(("volumes", "gigabytes"), -1)
        path = f"/os-quota-sets/{self._site.project}"
        self.request(0, "PUT", self._url(path), {"quota_set": values})

    def create(self, number: int, server: str) -> str:
        """Create an empty volume of one GiB that a server reaches; return its ID."""
        hints = {"local_to_instance": server}
        body = {
            "volume": {"size": 1, "name": f"volume-{number}"},
            "OS-SCH-HNT:scheduler_hints": hints,
        }
        return str(self.request(number, "POST", self._url("/volumes"), body)["volume"]["id"])

    def delete(self, number: int, volume: str) -> None:
        """Delete a volume."""
        self.request(number, "DELETE", self._url(f"/volumes/{volume}"))

    def attach(self, number: int, server: str, volume: str) -> None:
        """Attach a volume to a server."""
        body = {"volumeAttachment": {"volumeId": volume}}
        self.request(number, "POST", self._attachments(server), body)

    def detach(self, number: int, server: str, volume: str) -> None:
        """Detach a volume from a server."""
        self.request(number, "DELETE", f"{self._attachments(server)}/{volume}")

    def count(self, status: str | None = None) -> int:
        """Return how many volumes there are, of a status."""
        query = f"?limit=1000{f'&status={status}' if status else ''}"
        return len(self.request(0, "GET", self._url(f"/volumes{query}"))["volumes"])

    def _url(self, path: str) -> str:
        return f"{self._site.volume_url}{path}"

    def _attachments(self, server: str) -> str:
        return f"{self._site.base_url}/servers/{server}/os-volume_attachments"


def at_once(
    meter: Meter, volumes: int, act: Callable[[int], Any], done: Callable[[], bool]
) -> tuple[list[Any], dict[str, Any]]:
    """Have 8 clients do something with each volume; return its answers, and what one costs."""
    meter.restart()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(act, range(volumes)))
    wait(done, LOOK_SECONDS)
    seconds = meter.seconds
    found = {"seconds": round(seconds, 2), "each_second": round(volumes / seconds, 1)}
    return answers, found | meter.read(volumes)


def come_and_go(site: Site, volumes: int, servers: list[str]) -> dict[str, Any]:
    """Return the cost of each phase of the volumes' life."""
    asked, meter = Volumes(site), Meter(site)

    def server(number: int) -> str:
        return servers[number % len(servers)]

    ids, create = at_once(
        meter,
        volumes,
        lambda n: asked.create(n, server(n)),
        lambda: asked.count("available") == volumes,
    )
    _, attach = at_once(
        meter,
        volumes,
        lambda n: asked.attach(n, server(n), ids[n]),
        lambda: asked.count("in-use") == volumes,
    )
    _, detach = at_once(
        meter,
        volumes,
        lambda n: asked.detach(n, server(n), ids[n]),
        lambda: asked.count("available") == volumes,
    )
    _, delete = at_once(
        meter, volumes, lambda n: asked.delete(n, ids[n]), lambda: asked.count() == 0
    )
    return {"create": create, "attach": attach, "detach": detach, "delete": delete}


def measure(site: Site, volumes: int) -> dict[str, Any]:
    """Return the cost of a volume's life, beside its bounds."""
    client = Client(site)
    count = max(CLIENTS, -(-volumes // MOST_ON_A_SERVER))
    client.create("has-volumes", count)
    wait(lambda: len(client.servers("ACTIVE")) == count, LOOK_SECONDS)
    servers = client.servers()
    Volumes(site).unlimited()
    come_and_go(site, CLIENTS, servers)  # what is done once is not measured
    found = come_and_go(site, volumes, servers)
    delete_all(site)
    for name, phases, bound in (
        ("create_and_delete", ("create", "delete"), LIFE_MS),
        ("attach_and_detach", ("attach", "detach"), PLUG_MS),
    ):
        total = sum(found[phase]["cpu_ms"]["sum"] for phase in phases)
        found[name] = {"cpu_ms": round(total, 1), "bound_ms": bound}
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON; 1 if a bound is passed."""
    parser = argparse.ArgumentParser(prog="benchmarks.volumes", description=__doc__.split("\n")[0])
    parser.add_argument("--cloud", choices=sorted(SITES), default="embedded")
    parser.add_argument("--hosts", type=int, default=8, help="hosts without a hypervisor")
    parser.add_argument("--volumes", type=int, default=100)
    parser.add_argument("--statements", action="store_true", help="count PostgreSQL's statements")
    given = parser.parse_args(arguments)
    wanted = Wanted("null", given.hosts, given.statements)
    with (
        tempfile.TemporaryDirectory(prefix="micronova-bench-") as folder,
        SITES[given.cloud](Path(folder), wanted) as site,
    ):
        found = measure(site, given.volumes)
    about = {
        "cloud": given.cloud,
        "volumes": given.volumes,
        "clients": CLIENTS,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    json.dump(about | found, sys.stdout, indent=2)
    sys.stdout.write("\n")
    bounds = (found["create_and_delete"], found["attach_and_detach"])
    return int(any(one["cpu_ms"] > one["bound_ms"] for one in bounds))


if __name__ == "__main__":
    sys.exit(main())

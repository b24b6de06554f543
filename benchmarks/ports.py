"""Measure the ports of users, as JSON: ``python -m benchmarks.ports``.

A cloud without hypervisors runs, and 8 clients create and delete ports of it over HTTP: CPU of all
services, and `--statements` of PostgreSQL (separate services). Then 10,000 ports are listed by
pages of 1,000, in one process on SQLite, without network; 1 if a bound is passed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import falcon.testing
import requests

from api.network.app import make_app
from benchmarks.cloud import CLIENTS, Meter
from benchmarks.sites import SITES, Site, Wanted
from common import ids
from common.process import garbage
from db import engine, schema
from tests.fixtures import auth
from tests.fixtures.listings import NOW, a_conf, a_database, a_network, a_port, a_subnet

TIMEOUT_SECONDS = 60
#: CPU milliseconds: of a port's creation with its deletion, and of a page
PORT_MS, PAGE_MS = 8, 60
PAGE = 1000


def come_and_go(site: Site, ports: int) -> dict[str, Any]:
    """Create and delete ports, each client one after the other; return the cost of each."""

    def client(count: int) -> None:
        session = requests.Session()
        session.trust_env = False
        session.headers["X-Auth-Token"] = site.token
        url = f"{site.network_url}/ports"
        for _ in range(count):
            wanted = {"port": {"network_id": site.network}}
            made = session.post(url, json=wanted, timeout=TIMEOUT_SECONDS)
            made.raise_for_status()
            port = made.json()["port"]["id"]
            session.delete(f"{url}/{port}", timeout=TIMEOUT_SECONDS).raise_for_status()

    client(5)
    meter = Meter(site)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, [ports // CLIENTS] * CLIENTS))
    return {"seconds": round(meter.seconds, 2), **meter.read(ports // CLIENTS * CLIENTS)}


def _row(number: int) -> dict[str, Any]:
    _, values = a_port(
        number,
        f"project-{number % 10}",
        mac=f"fa:16:3e:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}",
        ip=f"10.20.{number >> 8}.{number & 255}",
        server_uuid="",
        kept=True,
        created_at=NOW + datetime.timedelta(seconds=number),
    )
    return values


def pages(rows: int, runs: int) -> dict[str, Any]:
    """Return the CPU of pages of ports."""
    with tempfile.TemporaryDirectory() as folder:
        reader = a_database(Path(folder), [a_network("vmbr0"), a_subnet("vmbr0")])
        writer = engine.writer(reader.url.render_as_string())
        with writer.begin() as connection:
            connection.execute(schema.ports.insert(), [_row(n) for n in range(rows)])
        writer.dispose()
        client = falcon.testing.TestClient(make_app(a_conf(), reader, auth.header_auth, None))
        garbage.settle()  # as every service does once it serves
        middle = ids.named("port", str(rows // 2))
        found = {
            name: _milliseconds(client, query, runs)
            for name, query in {
                "first": f"limit={PAGE}",
                "in_the_middle": f"limit={PAGE}&marker={middle}",
                "by_name": f"limit={PAGE}&sort_key=name&sort_dir=asc",
                "of_a_project": f"limit={PAGE}&project_id=project-3",
            }.items()
        }
        reader.dispose()
    return {"rows": rows, "page": PAGE, "bound_ms": PAGE_MS, "pages": found}


def _milliseconds(client: falcon.testing.TestClient, query: str, runs: int) -> dict[str, float]:
    took = []
    for _ in range(runs):
        begun = time.process_time()
        headers = {"X-Auth-Token": auth.ADMIN}
        answer = client.simulate_get("/v2.0/ports", query_string=query, headers=headers)
        took.append((time.process_time() - begun) * 1000)
        if answer.status_code != 200 or len(answer.json["ports"]) != PAGE:
            raise SystemExit(f"{query}: {answer.status_code}, {answer.text[:300]}")
    return {
        "median_cpu_ms": round(statistics.median(took), 1),
        "worst_cpu_ms": round(max(took), 1),
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON; 1 if a bound is passed."""
    parser = argparse.ArgumentParser(prog="benchmarks.ports", description=__doc__)
    parser.add_argument("--cloud", choices=sorted(SITES), default="embedded")
    parser.add_argument("--ports", type=int, default=400)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--statements", action="store_true", help="count PostgreSQL's statements")
    given = parser.parse_args(arguments)
    found: dict[str, Any] = {
        "cloud": given.cloud,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "list": pages(given.rows, given.runs),
    }
    with (
        tempfile.TemporaryDirectory(prefix="micronova-bench-") as folder,
        SITES[given.cloud](Path(folder), Wanted("null", 1, given.statements)) as site,
    ):
        found["create_and_delete"] = come_and_go(site, given.ports) | {"bound_ms": PORT_MS}
    json.dump(found, sys.stdout, indent=1)
    print()
    listed = max(one["median_cpu_ms"] for one in found["list"]["pages"].values())
    return int(listed > PAGE_MS or found["create_and_delete"]["cpu_ms"]["sum"] > PORT_MS)


if __name__ == "__main__":
    sys.exit(main())

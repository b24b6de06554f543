"""Measure the server CPU per request of placement, without the token check; prints JSON.

    python benchmarks/placement.py [--providers 3] [--rounds 300] [--url sqlite:////tmp/x.db]

Requests go straight into the WSGI application, so the figures hold nothing of sockets or clients.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from falcon import testing
from oslo_config import cfg

from placement import config
from placement.app import make_app, make_services
from placement.db import inventories, memberships, migrate, providers
from tests.fixtures.auth import SERVICE, header_auth

VERSION = "placement 1.36"
INVENTORY = {"reserved": 0, "min_unit": 1, "max_unit": 10**6, "step_size": 1}
WANTED = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
TOTALS = {"VCPU": 10**6, "MEMORY_MB": 10**9, "DISK_GB": 10**6}
TRAITS = ["HW_CPU_X86_VMX", "COMPUTE_NODE", "STORAGE_DISK_SSD"]


def configured(url: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf([], project="benchmark", default_config_files=[])
    conf.set_override("connection", url, config.DATABASE_GROUP)
    return conf


def fill(conf: cfg.ConfigOpts, count: int) -> list[str]:
    services = make_services(conf)
    uuids = [str(uuid.uuid4()) for _ in range(count)]
    stock = {
        name: {**INVENTORY, "total": total, "allocation_ratio": 1.0}
        for name, total in TOTALS.items()
    }

    def work(connection: Any) -> None:
        for number, one in enumerate(uuids):
            providers.create(connection, one, f"node-{one}-{number}", None)
            inventories.replace(connection, one, stock, None)
            memberships.set_traits(connection, one, TRAITS, None)

    services.database.write(work)
    services.database.close()
    return uuids


def measure(rounds: int, call: Callable[[int], None]) -> dict[str, float]:
    call(0)
    cpu, wall = time.process_time(), time.perf_counter()
    for number in range(1, rounds + 1):
        call(number)
    return {
        "cpu_ms": round((time.process_time() - cpu) / rounds * 1000, 3),
        "wall_ms": round((time.perf_counter() - wall) / rounds * 1000, 3),
    }


def run(url: str, count: int, rounds: int) -> dict[str, Any]:
    migrate.upgrade(url)
    conf = configured(url)
    start = time.perf_counter()
    uuids = fill(conf, count)
    loaded = time.perf_counter() - start
    app = make_app(conf, protect=header_auth)
    environ = {"HTTP_X_AUTH_TOKEN": SERVICE, "HTTP_OPENSTACK_API_VERSION": VERSION}
    consumers = [str(uuid.uuid4()) for _ in range(rounds + 1)]

    def request(method: str, path: str, query: str = "", body: Any = None) -> None:
        """Build the environ for each request, as a server does; some 0.02 ms of the figures."""
        raw = b"" if body is None else json.dumps(body).encode()
        env = testing.create_environ(path, query, "1.1", method=method, body=raw)
        if body is not None:
            env["CONTENT_TYPE"] = "application/json"
        said: list[str] = []
        b"".join(app(env | environ, lambda status, headers, exc=None: said.append(status)))
        assert said[0][0] == "2", (method, path, said)

    query = "resources=" + "%2C".join(f"{name}%3A{n}" for name, n in WANTED.items())

    def claim(number: int) -> None:
        body = {
            "allocations": {uuids[number % count]: {"resources": WANTED}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
        }
        request("PUT", f"/allocations/{consumers[number]}", body=body)

    def claim_first(number: int) -> None:
        body = {
            "providers": [uuids[(number + step) % count] for step in range(min(10, count))],
            "resources": WANTED,
            "project_id": "project",
            "user_id": "user",
        }
        request("PUT", f"/micronova/allocations/{uuid.uuid4()}", body=body)

    start = time.perf_counter()
    request("GET", "/allocation_candidates", query)
    first = time.perf_counter() - start
    figures = {
        "GET /": measure(rounds, lambda _: request("GET", "/")),
        "GET /allocation_candidates?limit=1000": measure(
            rounds, lambda _: request("GET", "/allocation_candidates", f"{query}&limit=1000")
        ),
        "GET /allocation_candidates?limit=1000&required=…": measure(
            rounds,
            lambda _: request(
                "GET",
                "/allocation_candidates",
                f"{query}&limit=1000&required=HW_CPU_X86_VMX%2C%21COMPUTE_STATUS_DISABLED",
            ),
        ),
        "GET /micronova/allocation_candidates?limit=1000": measure(
            rounds,
            lambda _: request("GET", "/micronova/allocation_candidates", f"{query}&limit=1000"),
        ),
        "PUT /allocations/{new consumer}": measure(rounds, claim),
        "PUT /micronova/allocations/{new consumer}, of ten": measure(rounds, claim_first),
        "GET /allocations/{consumer}": measure(
            rounds, lambda number: request("GET", f"/allocations/{consumers[number]}")
        ),
        "DELETE /allocations/{consumer}": measure(
            rounds, lambda number: request("DELETE", f"/allocations/{consumers[number]}")
        ),
    }

    def both(number: int) -> None:
        claim(number)
        request("GET", "/allocation_candidates", f"{query}&limit=1000")

    figures["PUT, then GET candidates"] = measure(rounds, both)

    def both_as_columns(number: int) -> None:
        claim_first(number)
        request("GET", "/micronova/allocation_candidates", f"{query}&limit=1000")

    figures["PUT of ten, then GET in columns"] = measure(rounds, both_as_columns)
    return {
        "providers": count,
        "rounds": rounds,
        "fill_s": round(loaded, 2),
        "first_snapshot_ms": round(first * 1000, 1),
        "requests": figures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--providers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--url")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"sqlite:///{folder}/placement.db"
        print(
            json.dumps(run(url, options.providers, options.rounds), indent=2, ensure_ascii=False)
        )


if __name__ == "__main__":
    main()

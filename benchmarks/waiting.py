"""Measure requests that wait for room on a full cloud. JSON.

    python -m benchmarks.waiting [--hosts 100] [--waiting 1000] [--releases 10] [--ordinary 200]

All services run in this process, on a private PostgreSQL, with agents that need no hypervisor.
Each host has room for one large server and for a tiny one. The large ones fill the hosts; further
large ones wait, for several projects in turn. Tiny ones are created before and while they wait
(``ordinary_*_ms``: until ACTIVE, polled each 5 ms), one after the other. Then large ones are
deleted, ``--at-once`` at a time: ``started`` of those that wait must be as many as ended, and
``decisions`` are the schedulers' decisions about them. The exit code is 1 where one started that
did not fit, a release took more than 16 decisions, or an order of arrival within a project was
not kept.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import common.rpc.messaging  # noqa: F401  # first: it chooses threads
from common import clock
from db import engine, schema
from tests.fixtures.auth import ADMIN, MEMBER, OTHER
from tests.functional import backends
from tests.functional.test_costs import Cloud
from tests.functional.waiting import eventually

LARGE, TINY = "8", "1"
PROJECTS = (MEMBER, OTHER, ADMIN)
"""Tokens of three projects."""
MOST_DECISIONS = 16
TIMEOUT_SECONDS = 600.0
OPTIONS = (
    ("null", "vcpus", 9),
    ("compute", "cpu_allocation_ratio", 1.0),
    ("seed", "flavors", [f"{TINY}:tiny:1:512:1", f"{LARGE}:large:8:2048:1"]),
    ("quota", "instances", -1),
    ("quota", "cores", -1),
    ("quota", "ram", -1),
    ("conductor", "scan_seconds", 1.0),
    ("conductor", "waiting_of_project", 100_000),
    ("conductor", "waiting_most", 100_000),
)
_ALIVE = schema.servers.c.deleted_at.is_(None)


class Full:
    """A cloud whose hosts are full but for a little."""

    def __init__(self, cloud: Cloud, url: str, hosts: int) -> None:
        self._cloud, self._reader, self._hosts = cloud, engine.reader(url), hosts
        self._until(lambda: len(cloud.placement.candidates({"VCPU": 1}).uuids) == hosts)
        images = sa.select(schema.images.c.id).limit(1)
        self._until(lambda: self._one(images) is not None)
        self._image = str(self._one(images))

    def fill(self) -> list[str]:
        """Return the servers that take all room for large ones."""
        made = [self.create(LARGE, MEMBER) for _ in range(self._hosts)]
        self._until(lambda: self.count("active") == self._hosts)
        return made

    def create(self, flavor: str, token: str, wait: int | None = None) -> str:
        """Ask for a server, which may wait for so many seconds."""
        server = {"name": "s", "flavorRef": flavor, "imageRef": self._image, "networks": "none"}
        body: dict[str, Any] = {"server": server}
        if wait is not None:
            body["os:scheduler_hints"] = {"micronova:wait": wait}
        return str(self._cloud.call("POST", "/v2.1/servers", token, json=body)["server"]["id"])

    def wait(self, count: int) -> float:
        """Have so many wait; return the seconds that it took."""
        began = time.monotonic()
        for number in range(count):
            self.create(LARGE, PROJECTS[number % len(PROJECTS)], wait=86_400)
        self._until(lambda: self.waiting() == count)
        return time.monotonic() - began

    def ordinary(self, count: int) -> list[float]:
        """Return the seconds to ACTIVE of tiny servers, which are deleted again."""
        seconds = []
        for _ in range(count):
            began = time.monotonic()
            uuid = self.create(TINY, MEMBER)
            self._until(functools.partial(self._is_active, uuid), 0.005)
            seconds.append(time.monotonic() - began)
            self.delete([uuid])
        return seconds

    def delete(self, uuids: Sequence[str]) -> None:
        """End servers; returns once they are gone."""
        for uuid in uuids:
            self._cloud.call("DELETE", f"/v2.1/servers/{uuid}")
        self._until(lambda: all(self._state(uuid) == "deleted" for uuid in uuids))

    def release(self, uuids: Sequence[str]) -> dict[str, Any]:
        """End servers; return who started, and what it took, once nobody decides any more."""
        waited, before = self.waiting(), clock.utcnow()
        began = time.monotonic()
        self.delete(uuids)
        self._until(lambda: self.waiting() == waited - len(uuids) and not self._busy())
        return {
            "ended": len(uuids),
            "started": waited - self.waiting(),
            "decisions": waited - self.waiting() + self._tried(before),
            "seconds": round(time.monotonic() - began, 2),
        }

    def _tried(self, since: Any) -> int:
        """Return how many of those that wait were decided on since then."""
        query = sa.select(sa.func.count()).where(schema.waiting_builds.c.tried_at >= since)
        return int(self._one(query))

    def waiting(self) -> int:
        """Return how many servers have no host yet."""
        return self.count("building")

    def count(self, state: str) -> int:
        """Return how many servers are in a state."""
        query = sa.select(sa.func.count()).where(_ALIVE, schema.servers.c.vm_state == state)
        return int(self._one(query))

    def is_in_order(self) -> bool:
        """Return whether nobody of a project started before one who had asked earlier."""
        columns = schema.servers.c
        query = sa.select(columns.project_id, columns.vm_state).where(
            _ALIVE, columns.vcpus == int(LARGE)
        )
        with self._reader.connect() as connection:
            rows = connection.execute(query.order_by(columns.id)).all()
        behind = {row.project_id for row in rows if row.vm_state == "building"}
        by_project = {one: [row.vm_state for row in rows if row[0] == one] for one in behind}
        return all(sorted(states) == states for states in by_project.values())

    def _busy(self) -> bool:
        # The row of who was served last in its project is left, to remember whose turn it was.
        rows, servers = schema.waiting_builds, schema.servers
        joined = rows.join(servers, servers.c.uuid == rows.c.server_uuid)
        query = sa.select(sa.func.count()).select_from(joined)
        return bool(self._one(query.where(rows.c.woken_at.is_not(None), servers.c.host.is_(None))))

    def _state(self, uuid: str) -> str:
        columns = schema.servers.c
        return str(self._one(sa.select(columns.vm_state).where(columns.uuid == uuid)))

    def _is_active(self, uuid: str) -> bool:
        return self._state(uuid) == "active"

    def _one(self, query: sa.Select[Any]) -> Any:
        with self._reader.connect() as connection:
            return connection.execute(query).scalar()

    def _until(self, is_so: Callable[[], bool], pause: float = 0.05) -> None:
        eventually(is_so, TIMEOUT_SECONDS, pause)


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return median and 99th percentile."""
    ordered = sorted(seconds)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return {"p50": round(1000 * statistics.median(ordered), 1), "p99": round(1000 * last, 1)}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return the figures."""
    with backends.postgres() as server, tempfile.TemporaryDirectory() as folder:
        server.execute("CREATE DATABASE cloud", "CREATE DATABASE placement")
        urls = [server.url("cloud"), server.url("placement")]
        options = (*OPTIONS, ("null", "hosts", args.hosts))
        cloud = Cloud(Path(folder), urls, options)
        cloud.start()
        try:
            full = Full(cloud, urls[0], args.hosts)
            filled = full.fill()
            alone = full.ordinary(args.ordinary)
            seconds = full.wait(args.waiting)
            beside = full.ordinary(args.ordinary)
            releases = [
                full.release(filled[number * args.at_once : (number + 1) * args.at_once])
                for number in range(args.releases)
            ]
            return {
                "hosts": args.hosts,
                "waiting": args.waiting,
                "seconds_until_all_wait": round(seconds, 1),
                "ordinary_alone_ms": milliseconds(alone),
                "ordinary_beside_ms": milliseconds(beside),
                "releases": releases,
                "in_order": full.is_in_order(),
            }
        finally:
            cloud.stop()


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--ordinary", type=int, default=200)
    found = measure(parser.parse_args(argv))
    print(json.dumps(found, indent=2))
    bad = any(
        one["started"] != one["ended"] or one["decisions"] > MOST_DECISIONS
        for one in found["releases"]
    )
    return 1 if bad or not found["in_order"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure scheduling decisions end to end: RPC, placement, filters, weighers, claim. JSON.

    python -m benchmarks.decisions [--hosts 1000] [--decisions 100] [--schedulers 8]

Schedulers are processes of their own on a private RabbitMQ; placement is served by gunicorn from
a private PostgreSQL. First one decision after the other, with the CPU of each process; then the
schedulers decide at once where there is room for all (``together``), and then race for the last
room of a few hosts (``race``): exactly as many servers as fit may win. ``lost`` is the share of
claims that were lost to others. The exit code is 1 where a tenth of the last, or more than a
hundredth of the others, were lost.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import itertools
import json
import math
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.asking import TOTALS
from benchmarks.placement_vs_original import fill
from benchmarks.reading.processes import cpu_seconds, tree
from benchmarks.scheduler import host as a_host
from benchmarks.serving import ours
from common import clock, ids, rpc
from common.context import internal
from common.errors import Unavailable
from common.messages.facts import Heartbeat, HostFacts
from common.messages.scheduling import Decision, RequestSpec
from common.messages.topics import HOST_FACTS_TOPIC
from common.resources.aggregates import AllAggregates
from launcher import configuration
from launcher.embedded.settings import render
from scheduler.client import SchedulerClient
from scheduler.select import CHANGED, NOT_TOGETHER, TAKEN
from tests.functional import backends, brokers

FACTS_PER_MESSAGE = 200
SLOTS_PER_HOST = 8
RACE_HOSTS = 10
START_SECONDS = 60.0
LOST = (TAKEN, CHANGED, NOT_TOGETHER)
"""Results of claims that have to be made again."""
LOST_OF_MANY, LOST_OF_LAST = 0.01, 0.1
"""The shares of claims that may be lost: where there is room for all, and where there is not."""


def request(vcpus: int = 2) -> RequestSpec:
    """Return the request spec of a small server."""
    return RequestSpec(ids.new_uuid(), "project", "user", vcpus, 4096, 20, image_id="image")


class Schedulers:
    """Scheduler processes over a placement of some hosts."""

    def __init__(
        self, folder: Path, database: str, broker: str, stack: contextlib.ExitStack
    ) -> None:
        self._folder, self._stack = folder, stack
        self._broker = broker
        self._placement = stack.enter_context(ours(database, folder, ""))
        self.uuids: list[str] = []
        self._database = database
        self.processes: list[subprocess.Popen[bytes]] = []

    def fill(self, count: int) -> None:
        """Create the hosts' providers."""
        self.uuids = [ids.new_uuid() for _ in range(count)]
        fill(self._database, self.uuids)

    def start(self, count: int) -> SchedulerClient:
        """Start the processes and publish the hosts to them."""
        path = self._folder / "schedulers.conf"
        url = f"http://127.0.0.1:{self._placement.port}"
        path.write_text(
            render(
                {
                    "DEFAULT": {"transport_url": self._broker},
                    "rpc": {"rpc_timeout_seconds": "20"},
                    "placement": {"auth_type": "admin_token", "endpoint": url, "token": "admin"},
                }
            )
        )
        command = [sys.executable, "-m", "micronova", "service", "scheduler"]
        command += ["--config-file", str(path)]
        for number in range(count):
            output = (self._folder / f"scheduler-{number}.log").open("wb")
            process = subprocess.Popen(command, stdout=output, stderr=output)
            self._stack.callback(process.kill)
            self.processes.append(process)
        transport = rpc.transport(configuration.load([str(path)]))
        self._stack.callback(transport.cleanup)
        client = SchedulerClient(transport)
        self._publish(rpc.Client(transport, HOST_FACTS_TOPIC), client)
        return client

    def _publish(self, facts: rpc.Client, client: SchedulerClient) -> None:
        """Publish the hosts until every scheduler knows them."""
        known = [_facts(number, uuid) for number, uuid in enumerate(self.uuids)]
        deadline = time.monotonic() + START_SECONDS
        ready = 0
        while ready < 4 * len(self.processes):
            if time.monotonic() > deadline:
                raise TimeoutError("The schedulers don't learn of the hosts.")
            for start in range(0, len(known), FACTS_PER_MESSAGE):
                part = tuple(known[start : start + FACTS_PER_MESSAGE])
                heartbeat = Heartbeat("w", clock.utcnow(), tuple(one.host for one in part), part)
                facts.cast(internal(), "update_hosts", fanout=True, heartbeat=heartbeat)
            client.update_aggregates(internal(), AllAggregates(1))
            ready = 0
            with contextlib.suppress(Unavailable):
                for _ in range(4 * len(self.processes)):
                    found = client.preview(internal(), (request(),))
                    ready += found[0].host is not None

    def memory_mib(self) -> dict[str, list[float]]:
        """Return the resident memory of the processes, by service."""
        return {name: list(map(_resident_mib, pids)) for name, pids in self._pids().items()}

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU seconds of the processes, by service."""
        return cpu_seconds(self._pids())

    def _pids(self) -> dict[str, list[int]]:
        return {
            "scheduler": [process.pid for process in self.processes],
            "placement": tree(self._placement.pid)[1:],
        }


def _facts(number: int, uuid: str) -> HostFacts:
    """Return a host of that provider, with room for as much as placement has."""
    return dataclasses.replace(
        a_host(number, random.Random(number)).facts,
        uuid=uuid,
        vcpus=TOTALS["VCPU"],
        memory_mib=TOTALS["MEMORY_MB"],
        disk_gib=TOTALS["DISK_GB"],
    )


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = next(line for line in lines if line.startswith("VmRSS")).split()[1]
    return round(int(kib) / 1024, 1)


@dataclasses.dataclass
class Backing:
    """A database server and a broker, for several runs one after the other."""

    postgres: backends.Postgres
    broker: str
    runs: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    def database(self) -> str:
        """Return the URL of a new database."""
        name = f"placement_{next(self.runs)}"
        self.postgres.execute(f"CREATE DATABASE {name}")
        return self.postgres.url(name)


@contextlib.contextmanager
def backing() -> Iterator[Backing]:
    """Run what all runs have in common."""
    with backends.postgres() as postgres, brokers.rabbitmq() as broker:
        yield Backing(postgres, broker)


@contextlib.contextmanager
def schedulers(
    backed: Backing, hosts: int, count: int
) -> Iterator[tuple[Schedulers, SchedulerClient]]:
    """Run everything that a decision needs."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(backends.private_folder())
        made = Schedulers(folder, backed.database(), backed.broker, stack)
        made.fill(hosts)
        yield made, made.start(count)


def one_by_one(made: Schedulers, client: SchedulerClient, count: int) -> dict[str, Any]:
    """Return milliseconds of a decision, asked one after the other, and of the CPU of services."""
    took, inside = [], []
    before = made.cpu_seconds()
    for number in range(count + 10):
        if number == 10:
            before = made.cpu_seconds()
        began = time.perf_counter()
        decision = client.select(internal(), request())
        took.append((time.perf_counter() - began) * 1000)
        inside.append(decision.seconds * 1000)
        assert decision.host, decision.reason
    used = made.cpu_seconds()
    each = {name: round((used[name] - before[name]) / count * 1000, 2) for name in used}
    return {
        "end_to_end_ms": _spread(took[10:]),
        "in_the_scheduler_ms": _spread(inside[10:]),
        "cpu_ms": each | {"both": round(sum(each.values()), 2)},
    }


def race(client: SchedulerClient, clients: int) -> dict[str, Any]:
    """Decide for more servers than there is room for, all at once."""
    slots = RACE_HOSTS * SLOTS_PER_HOST
    vcpus = TOTALS["VCPU"] // SLOTS_PER_HOST
    found = together(client, clients, [request(vcpus) for _ in range(2 * slots)])
    return {"room_for": slots, "room_of_a_host": SLOTS_PER_HOST, **found}


def together(
    client: SchedulerClient, clients: int, asked: Sequence[RequestSpec]
) -> dict[str, Any]:
    """Decide about servers, all at once; return how the claims went."""
    retries = itertools.count()

    def ask(one: RequestSpec) -> Decision:
        while True:
            try:
                return client.select(internal(), one)
            except Unavailable:
                # As a conductor does: later.
                next(retries)
                threading.Event().wait(0.05)

    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        decisions = list(pool.map(ask, asked))
    took = time.perf_counter() - began
    placed = [decision for decision in decisions if decision.host]
    claims = collections.Counter(
        claim["result"] for decision in decisions for claim in decision.claims
    )
    hosts = collections.Counter(decision.host for decision in placed)
    lost = sum(claims[result] for result in LOST)
    return {
        "asked": len(asked),
        "placed": len(placed),
        "most_on_a_host": max(hosts.values(), default=0),
        "claims": dict(claims),
        "lost": round(lost / max(lost + len(placed), 1), 3),
        "asked_again": next(retries),
        "seconds": round(took, 2),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "p50": round(statistics.median(ordered), 2),
        "p95": round(ordered[math.ceil(len(ordered) * 0.95) - 1], 2),
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.decisions")
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--decisions", type=int, default=100)
    parser.add_argument("--schedulers", type=int, default=8, help="that race")
    given = parser.parse_args(arguments)
    found: dict[str, Any] = {"hosts": given.hosts}
    with backing() as backed:
        with schedulers(backed, given.hosts, 1) as (made, client):
            found |= one_by_one(made, client, given.decisions)
            found["memory_mib"] = made.memory_mib()
        with schedulers(backed, given.hosts, given.schedulers) as (_, client):
            asked = [request() for _ in range(5 * given.decisions)]
            found["together"] = {"schedulers": given.schedulers} | together(
                client, 2 * given.schedulers, asked
            )
        with schedulers(backed, RACE_HOSTS, given.schedulers) as (_, client):
            found["race"] = {"schedulers": given.schedulers} | race(client, 2 * given.schedulers)
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")
    fair = found["together"]["lost"] <= LOST_OF_MANY and found["race"]["lost"] < LOST_OF_LAST
    return 0 if fair else 1


if __name__ == "__main__":
    sys.exit(main())

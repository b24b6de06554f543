"""Simulate many regions behind one Keystone: memory, decisions, quota, tokens. Prints JSON.

    python -m benchmarks.regions [--regions 20] [--hosts 5000]

Each region is a process with what decides there: the scheduler's view of its hosts, placement with
an inventory of each in SQLite, and the quota of its record. No agents, no bus. Then

- each decides and claims by itself; all are asked at once where a server would fit,
- one project creates everywhere as fast as the regions take it, while its total is spread
  again and again: the sum of its servers must never be above the total,
- the real Keystone issues and checks a token whose catalog has one region, and all of them.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks.placement import VERSION, configured, fill
from benchmarks.scheduler import host, varied
from cli.admin.quota_spread import Limit, Quotas, apply, shares
from cli.errors import CommandFailed
from common import clock, config, ids
from common.errors import QuotaExceeded
from common.messages.scheduling import RequestSpec
from conductor.store.quotas import quotas as record_quotas
from db import engine
from db.schema import metadata, quota_limits, servers
from identity.joined import Catalog
from identity.layout import catalog
from scheduler import config as scheduler_config
from scheduler.decide import whatif
from scheduler.decide.choose import choose
from scheduler.hosts.columns import HostColumns
from scheduler.service import load_filters, load_weighers
from tests.fixtures.auth import SERVICE, header_auth

PROJECT = "project"
_CANDIDATES = "resources=VCPU%3A2%2CMEMORY_MB%3A4096%2CDISK_GB%3A20&limit=1000"
#: columns of a server whose value doesn't follow from their type
_SERVER = {"project_id": PROJECT, "vm_state": "active", "vcpus": 1, "memory_mib": 1}


class Region:
    """What decides in one region; made in its own process."""

    def __init__(self, number: int, hosts: int, folder: str) -> None:
        from placement.app import make_app
        from placement.db import migrate

        before = memory_mib()
        dice = random.Random(number)
        self._hosts = HostColumns.of(varied([host(n, dice) for n in range(hosts)], dice))
        conf = config.load([scheduler_config.register])
        self._filters, self._weighers = load_filters(conf), load_weighers(conf)
        self._request = RequestSpec("s", PROJECT, "u", 2, 4096, 20, image_id="image")
        scheduler = memory_mib()
        url = f"sqlite:///{folder}/placement-{number}.sqlite"
        migrate.upgrade(url)
        placement = configured(url)
        self._providers = fill(placement, hosts)
        self._app = make_app(placement, protect=header_auth)
        self.candidates()
        self.memory = {
            "imports_mib": before,
            "scheduler_mib": round(scheduler - before, 1),
            "placement_mib": round(memory_mib() - scheduler, 1),
            "process_mib": memory_mib(),
        }
        self._record = engine.writer(f"sqlite:///{folder}/cloud-{number}.sqlite")
        metadata.create_all(self._record)

    def candidates(self) -> None:
        """Ask placement where a small server fits."""
        self._ask("GET", "/allocation_candidates", _CANDIDATES)

    def decide(self, count: int) -> dict[str, float]:
        """Return milliseconds of a decision, and of placement's part and the claim."""
        return {
            "choose_ms": _median(count, lambda _: self.fit()),
            "candidates_ms": _median(count, lambda _: self.candidates()),
            "claim_ms": _median(count, self._claim),
        }

    def fit(self) -> str:
        """Return where a server would go."""
        chosen = choose(self._hosts, self._request, self._filters, self._weighers, keep=10)
        return str(chosen.ranked[0].host if chosen.ranked else "")

    def capacity(self) -> int:
        """Return how many more would fit."""
        return int(whatif.capacity(self._hosts, self._request, self._filters).total)

    def limit(self) -> tuple[int, int]:
        """Return the project's limit of cores, and what it uses."""
        with self._record.begin() as connection:
            limits = record_quotas.limits(connection, PROJECT, {"cores": 0})
            return limits["cores"], record_quotas.usage(connection, PROJECT)["cores"]

    def set_limit(self, value: int) -> None:
        """Set the limit, as the API does: never below what is used."""
        mine = {"project_id": PROJECT, "resource": "cores"}
        with self._record.begin() as connection:
            record_quotas.lock(connection, PROJECT)
            if record_quotas.usage(connection, PROJECT)["cores"] > value:
                raise CommandFailed("more is in use")
            matching = [quota_limits.c[name] == one for name, one in mine.items()]
            connection.execute(sa.delete(quota_limits).where(*matching))
            connection.execute(sa.insert(quota_limits), {**mine, "hard_limit": value})

    def create(self, seconds: float) -> dict[str, int]:
        """Create servers for some seconds; delete one now and then, so that there is room again.

        Return how many were created and refused.
        """
        made, refused, until = 0, 0, time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                with self._record.begin() as connection:
                    each = {"instances": 1, "cores": 1, "ram": 1}
                    defaults = {"instances": -1, "cores": 0, "ram": -1}
                    record_quotas.take(connection, PROJECT, defaults, each)
                    connection.execute(sa.insert(servers), _row(servers, _SERVER))
                made += 1
            except QuotaExceeded:
                refused += 1
                if refused % 5 == 0:
                    self._delete_one()
        return {"created": made, "refused": refused}

    def _delete_one(self) -> None:
        with self._record.begin() as connection:
            one = sa.select(sa.func.min(servers.c.id)).where(servers.c.deleted_at.is_(None))
            found = connection.execute(one).scalar()
            gone = sa.update(servers).where(servers.c.id == found)
            connection.execute(gone.values(deleted_at=clock.utcnow()))

    def _claim(self, number: int) -> None:
        wanted = {"resources": {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}}
        body = {
            "allocations": {self._providers[number % len(self._providers)]: wanted},
            "project_id": PROJECT,
            "user_id": "user",
            "consumer_generation": None,
        }
        self._ask("PUT", f"/allocations/{ids.new_uuid()}", "", json.dumps(body).encode())

    def _ask(self, method: str, path: str, query: str, body: bytes = b"") -> None:
        from falcon import testing

        environ = testing.create_environ(path, query, "1.1", method=method, body=body)
        environ |= {"HTTP_X_AUTH_TOKEN": SERVICE, "HTTP_OPENSTACK_API_VERSION": VERSION}
        environ |= {"CONTENT_TYPE": "application/json"} if body else {}
        statuses: list[str] = []
        b"".join(self._app(environ, lambda status, *_: statuses.append(status)))
        assert statuses[0][0] == "2", (method, path, statuses)


def serve(number: int, hosts: int, folder: str, ends: Sequence[Connection]) -> None:
    """Run a region: each connection has a thread, which calls what it is asked to."""
    region = Region(number, hosts, folder)

    def answer(end: Connection) -> None:
        while (asked := end.recv()) is not None:
            name, arguments = asked
            try:
                found: Any = getattr(region, name)
                end.send(found(*arguments) if callable(found) else found)
            except CommandFailed as error:
                end.send(error)

    threads = [threading.Thread(target=answer, args=(end,)) for end in ends]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


class Regions:
    """The regions' processes; each has a connection for work and another one for limits."""

    def __init__(self, count: int, hosts: int, folder: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.names = [f"region-{number:02}" for number in range(count)]
        self._ends: dict[str, list[Connection]] = {}
        self._processes = []
        for number, name in enumerate(self.names):
            pairs = [context.Pipe() for _ in range(2)]
            theirs = [pair[1] for pair in pairs]
            process = context.Process(target=serve, args=(number, hosts, folder, theirs))
            process.start()
            self._processes.append(process)
            self._ends[name] = [pair[0] for pair in pairs]
            self.ask(name, "memory")  # one after the other: filling uses all of a core

    def ask(self, name: str, what: str, *arguments: Any, way: int = 0) -> Any:
        """Return what a region answers. Raises CommandFailed where it refuses."""
        end = self._ends[name][way]
        end.send((what, arguments))
        found = end.recv()
        if isinstance(found, CommandFailed):
            raise found
        return found

    def all(self, what: str, *arguments: Any) -> dict[str, Any]:
        """Return what all answer, asked at the same time."""
        with concurrent.futures.ThreadPoolExecutor(len(self.names)) as pool:
            found = pool.map(lambda name: self.ask(name, what, *arguments), self.names)
            return dict(zip(self.names, found, strict=True))

    def close(self) -> None:
        """End them."""
        for ends in self._ends.values():
            for end in ends:
                end.send(None)
        for process in self._processes:
            process.join()


class RecordQuotas(Quotas):
    """The limits in the regions' records; ``highest`` is the greatest sum that was set."""

    def __init__(self, regions: Regions) -> None:
        super().__init__({}, PROJECT)
        self._among, self.highest = regions, 0

    def read(self, resource: str) -> dict[str, Limit]:
        """Return region → limit."""
        found = {name: Limit(*self._among.ask(name, "limit", way=1)) for name in self._among.names}
        self.highest = max(self.highest, sum(one.limit for one in found.values()))
        return found

    def set(self, region: str, resource: str, limit: int) -> None:
        """Set a limit."""
        self._among.ask(region, "set_limit", limit, way=1)


def quota_under_load(regions: Regions, total: int, seconds: float) -> dict[str, Any]:
    """Create in all regions while the total is spread again; return what came of it."""
    quotas = RecordQuotas(regions)
    apply(quotas, "cores", shares(total, dict.fromkeys(regions.names, 0)))
    loads: list[dict[str, Any]] = []
    load = threading.Thread(target=lambda: loads.append(regions.all("create", seconds)))
    load.start()
    spreads, refused, took, most = 0, 0, list[float](), 0
    dice = random.Random(1)
    while load.is_alive():
        began = time.perf_counter()
        used = {name: one.in_use for name, one in quotas.read("cores").items()}
        most = max(most, sum(used.values()))
        try:
            apply(quotas, "cores", _leaning(total, used, dice))
            spreads += 1
        except CommandFailed:
            refused += 1  # a region took more while it was counted: the next one continues
        took.append((time.perf_counter() - began) * 1000)
    load.join()
    used = {name: one.in_use for name, one in quotas.read("cores").items()}
    return {
        "total": total,
        "created": sum(one["created"] for one in loads[0].values()),
        "refused": sum(one["refused"] for one in loads[0].values()),
        "in_use_at_the_end": sum(used.values()),
        "most_in_use": max(most, sum(used.values())),
        "highest_sum_of_limits": quotas.highest,
        "spreads": spreads,
        "spreads_begun_again": refused,
        "spread_ms": round(statistics.median(took), 1),
        "is_kept": max(quotas.highest, most, sum(used.values())) <= total,
    }


def _leaning(total: int, used: Mapping[str, int], dice: random.Random) -> dict[str, int]:
    """Return shares where one region, another each time, gets more than the others."""
    wanted = shares(total, used)
    favourite = dice.choice(sorted(wanted))
    for name in wanted:
        spare = (wanted[name] - used[name]) // 2
        wanted[name] -= spare
        wanted[favourite] += spare
    return wanted


def tokens(counts: Sequence[int], folder: Path) -> dict[str, Any]:
    """Return the cost of a token by the number of regions in the catalog of the real Keystone."""
    from tests.functional.keystone_fixture import running_keystone

    found = {}
    with running_keystone(folder) as keystone:
        admin, joined = keystone.session("admin", "admin"), 1
        register = Catalog(admin, keystone.auth_url)
        for count in counts:
            for number in range(joined, count):
                url = f"https://region-{number}.cloud.example"
                entries = catalog(keystone.auth_url, url)
                register.join(f"region-{number:02}", entries, ())
            joined = count
            headers = {"X-Subject-Token": keystone.token()}

            def check(_: int, sent: Mapping[str, str] = headers) -> None:
                admin.get(f"{keystone.auth_url}/auth/tokens", headers=dict(sent))

            answer = admin.get(f"{keystone.auth_url}/auth/tokens", headers=headers)
            found[str(count)] = {
                "catalog_kib": round(len(answer.content) / 1024, 1),
                "log_in_ms": _median(5, lambda _: keystone.token()),
                "check_ms": _median(10, check),
            }
    return found


def memory_mib() -> float:
    """Return the resident memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kib = next(line for line in lines if line.startswith("VmRSS")).split()[1]
    return round(int(kib) / 1024, 1)


def _median(times: int, work: Callable[[int], object]) -> float:
    took = []
    for number in range(times):
        began = time.perf_counter()
        work(number)
        took.append((time.perf_counter() - began) * 1000)
    return round(statistics.median(took), 2)


def _row(table: sa.Table, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of what a table requires, which is unique where it must be."""
    made: dict[str, Any] = {}
    for column in table.columns:
        key = column.key
        if key in given:
            made[key] = given[key]
        elif not (column.nullable or column.primary_key or column.default is not None):
            made[key] = _value(column)
    return made


def _value(column: sa.Column[Any]) -> Any:
    text = str(column.type).upper()
    if column.name == "uuid":
        return ids.new_uuid()
    if "CHAR" in text:
        return "x"
    if "INT" in text or "BOOL" in text:
        return 0
    return clock.utcnow() if "DATE" in text else {}


def measure(count: int, hosts: int, decisions: int, seconds: float) -> dict[str, Any]:
    """Return all figures."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        regions = Regions(count, hosts, folder)
        try:
            filled = time.perf_counter() - began
            memory = regions.all("memory")
            alone = [regions.ask(name, "decide", decisions) for name in regions.names]
            first = regions.names[0]
            figures = {
                "filled_s": round(filled, 1),
                "memory_of_a_region": memory[first],
                "memory_of_all_mib": round(sum(one["process_mib"] for one in memory.values())),
                "a_decision_in_one_region": {
                    name: round(statistics.median(one[name] for one in alone), 2)
                    for name in alone[0]
                },
                "where_would_it_fit": {
                    "one_region_ms": _median(5, lambda _: regions.ask(first, "capacity")),
                    "all_regions_ms": _median(3, lambda _: regions.all("capacity")),
                    "room": sum(regions.all("capacity").values()),
                },
                "quota": quota_under_load(regions, 50 * count, seconds),
            }
        finally:
            regions.close()
        return figures | {"tokens": tokens(sorted({1, 2, count}), Path(folder))}


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON; 1 where the sum of a project's servers was above its total."""
    parser = argparse.ArgumentParser(prog="benchmarks.regions")
    parser.add_argument("--regions", type=int, default=20)
    parser.add_argument("--hosts", type=int, default=5000, help="of each region")
    parser.add_argument("--decisions", type=int, default=50, help="in each region")
    parser.add_argument("--seconds", type=float, default=20.0, help="of creates under quota")
    given = parser.parse_args(arguments)
    figures = measure(given.regions, given.hosts, given.decisions, given.seconds)
    shape = {"regions": given.regions, "hosts_of_each": given.hosts}
    json.dump({**shape, "python": platform.python_version(), **figures}, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0 if figures["quota"]["is_kept"] else 1


if __name__ == "__main__":
    sys.exit(main())

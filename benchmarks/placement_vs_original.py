"""Placement side by side with OpenStack Placement, on one PostgreSQL in one run; prints JSON.

    python benchmarks/placement_vs_original.py [--sizes 100 1000] [--ours-only 100000]
        [--original PYTHON] [--seconds 5] [--no-fsync]

`--ours-only` sizes show how ours grows; their database is filled with SQL.

The original comes from PyPI into a virtual environment of its own, unless `--original` names the
Python of one that has `openstack-placement`, `gunicorn` and `psycopg2-binary`. Both are served by
gunicorn with two workers of four threads, without a token check, on a database of their own of
one private PostgreSQL server, and are asked by the same client processes over keep-alive HTTP.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import http.client
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import orjson  # noqa: E402

from tests.functional import backends  # noqa: E402

CLIENTS = 8
HEADERS = {
    "X-Auth-Token": "admin",
    "X-Roles": "admin,member,reader",
    "OpenStack-API-Version": "placement 1.39",
    "Accept": "application/json",
}
TRAITS = ("HW_CPU_X86_VMX", "HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE")
TRAITS += ("HW_CPU_X86_SSE2", "COMPUTE_NODE", "STORAGE_DISK_SSD", "COMPUTE_VOLUME_EXTEND")
TRAITS += ("COMPUTE_NET_ATTACH_INTERFACE", "COMPUTE_IMAGE_TYPE_QCOW2")
GROUPS = [str(uuid.uuid5(uuid.NAMESPACE_DNS, str(number))) for number in range(50)]
TOTALS = {"VCPU": 100_000, "MEMORY_MB": 200_000_000, "DISK_GB": 1_000_000}
WANTED = "VCPU:2,MEMORY_MB:4096,DISK_GB:20"
TAKEN = {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}
QUERIES = {
    "plain": f"resources={WANTED}&limit=1000",
    "required": f"resources={WANTED}&limit=1000&required=HW_CPU_X86_AVX2",
    "member_of": f"resources={WANTED}&limit=1000&member_of={GROUPS[0]}",
    "two groups": "resources1=VCPU:2,MEMORY_MB:4096&resources2=DISK_GB:20&group_policy=none"
    "&limit=1000",
    "plain, limit=10": f"resources={WANTED}&limit=10",
}
OURS = """
    from pathlib import Path
    from tests.compat.placement.served import Served
    app = Served(Path("settings.json"))
"""
ORIGINAL = """
    from placement.wsgi import init_application
    app = init_application()
"""
CONFIGURATION = """
    [api]
    auth_strategy = noauth2
    [placement_database]
    connection = {url}
    [DEFAULT]
    log_file = {folder}/placement.log
"""


@dataclasses.dataclass(frozen=True)
class Served:
    """A service that is up: its port, and its gunicorn's process ID."""

    port: int
    pid: int


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self.failures = 0
        self._wire = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Make a request and return the status and the body of its answer."""
        headers = HEADERS
        raw = None
        if body is not None:
            raw, headers = orjson.dumps(body), {**HEADERS, "Content-Type": "application/json"}
        try:
            self._wire.request(method, path, raw, headers)
            answer = self._wire.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):
            self._wire.close()
            self._wire.request(method, path, raw, headers)
            answer = self._wire.getresponse()
        return answer.status, answer.read()

    def must(self, method: str, path: str, body: Any = None) -> bytes:
        """Make a request that has to work."""
        for _ in range(5):
            status, text = self.ask(method, path, body)
            if status < 300:
                return text
            if status < 500:
                break
            # The original's loses a race now and then, and works the second time.
            self.failures += 1
        raise RuntimeError(f"{method} {path}: {status} {text[:500]!r}")


@contextlib.contextmanager
def served(
    python: str, folder: Path, code: str, environment: dict[str, str], path: str
) -> Iterator[Served]:
    """Run gunicorn with an application."""
    (folder / "served.py").write_text(textwrap.dedent(code))
    port = backends.free_port()
    command = [python, "-m", "gunicorn", "served:app", "--bind", f"127.0.0.1:{port}"]
    command += ["--workers", "2", "--threads", "4", "--keep-alive", "60", "--pythonpath", path]
    command += ["--timeout", "600"]
    log = folder / "gunicorn.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdout=output, stderr=output
        )
    try:
        backends.wait_until("gunicorn", lambda: backends.listens(port), process, log)
        yield Served(port, process.pid)
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def ours(url: str, folder: Path, _: str) -> Iterator[Served]:
    """Run this project's service."""
    from placement.db import migrate

    migrate.upgrade(url)
    (folder / "policy.yaml").write_text("{}")
    settings = {"url": url, "policy_file": str(folder / "policy.yaml"), "settings": {}}
    (folder / "settings.json").write_text(json.dumps(settings))
    with served(sys.executable, folder, OURS, {}, f"{ROOT},{folder}") as service:
        yield service


@contextlib.contextmanager
def original(url: str, folder: Path, python: str) -> Iterator[Served]:
    """Run OpenStack Placement."""
    url = url.replace("postgresql+psycopg:", "postgresql+psycopg2:")
    (folder / "placement.conf").write_text(
        textwrap.dedent(CONFIGURATION.format(url=url, folder=folder))
    )
    environment = {"OS_PLACEMENT_CONFIG_DIR": str(folder), "PYTHONPATH": ""}
    manage = [python, "-m", "placement.cmd.manage", "--config-file", "placement.conf"]
    program = Path(python).with_name("placement-manage")
    if program.exists():
        manage = [str(program), "--config-file", "placement.conf"]
    subprocess.run([*manage, "db", "sync"], cwd=folder, check=True, capture_output=True)
    with served(python, folder, ORIGINAL, environment, str(folder)) as service:
        Client(service.port).must("GET", "/")
        yield service


def install(folder: Path) -> str:
    """Install the original into a virtual environment and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    wanted = ["openstack-placement", "gunicorn", "psycopg2-binary"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def in_processes(work: Callable[[int], Any], clients: int = CLIENTS) -> list[Any]:
    """Run work(number) in so many processes at once and return what they return."""
    with multiprocessing.get_context("fork").Pool(clients) as pool:
        return pool.map(work, range(clients), chunksize=1)


def load(port: int, uuids: Sequence[str], number: int) -> int:
    """Make every eighth provider, with all it has; return how many answers were 5xx."""
    client = Client(port)
    for index in range(number, len(uuids), CLIENTS):
        one = uuids[index]
        path = f"/resource_providers/{one}"
        client.must("POST", "/resource_providers", {"name": f"node-{index}", "uuid": one})
        stock = {"reserved": 0, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
        inventories = {n: {**stock, "total": t, "max_unit": t} for n, t in TOTALS.items()}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        client.must("PUT", f"{path}/inventories", body)
        client.must("PUT", f"{path}/traits", {"resource_provider_generation": 1, "traits": TRAITS})
        some = [GROUPS[(index + step) % len(GROUPS)] for step in range(5)]
        body = {"resource_provider_generation": 2, "aggregates": some}
        client.must("PUT", f"{path}/aggregates", body)
    return client.failures


def claim(port: int, uuids: Sequence[str], seconds: float, number: int) -> dict[str, int]:
    """Claim on the providers in turn for so long; return how often each status came."""
    client = Client(port)
    statuses: dict[str, int] = {}
    end = time.perf_counter() + seconds
    index = number
    while time.perf_counter() < end:
        body = {
            "allocations": {uuids[index % len(uuids)]: {"resources": TAKEN}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        status, _ = client.ask("PUT", f"/allocations/{uuid.uuid4()}", body)
        statuses[str(status)] = statuses.get(str(status), 0) + 1
        index += CLIENTS
    return statuses


def searches(port: int, query: str, seconds: float) -> dict[str, float]:
    """Ask for candidates, one at a time, for so long (three times at least)."""
    client = Client(port)
    path = f"/allocation_candidates?{query}"
    for _ in range(4):
        text = client.must("GET", path)
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        client.must("GET", path)
        times.append(time.perf_counter() - start)
    value = json.loads(text)
    serialising = {}
    for name, dumps in (("json", json.dumps), ("orjson", orjson.dumps)):
        start = time.perf_counter()
        for _ in range(5):
            dumps(value)
        serialising[f"{name}_ms"] = round((time.perf_counter() - start) / 5 * 1000, 4)
    return {
        "p50_ms": round(statistics.median(times) * 1000, 2),
        "candidates": len(value["allocation_requests"]),
        "bytes": len(text),
        **serialising,
    }


def memory_mib(pid: int) -> list[float]:
    """Return the resident memory of gunicorn's workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = []
    for child in children:
        lines = Path(f"/proc/{child}/status").read_text().splitlines()
        kib = next(line for line in lines if line.startswith("VmRSS")).split()[1]
        found.append(round(int(kib) / 1024, 1))
    return found


def rate(work: Callable[[int], Any], seconds: float) -> dict[str, Any]:
    """Return claims per second and failures of what eight clients do."""
    statuses: dict[str, int] = {}
    for one in in_processes(work):
        for status, count in one.items():
            statuses[status] = statuses.get(status, 0) + count
    return {"per_second": round(statuses.get("204", 0) / seconds, 1), "statuses": statuses}


def fill(url: str, uuids: Sequence[str]) -> None:
    """Write the providers into our tables, as `load` makes them through the API."""
    import psycopg

    at = "extract(epoch FROM now())::bigint"
    where = url.replace("postgresql+psycopg:", "postgresql:")
    with psycopg.connect(where) as connection:
        connection.execute("CREATE TEMP TABLE new (n int, uuid varchar)")
        with connection.cursor().copy("COPY new FROM STDIN") as copy:
            for number, one in enumerate(uuids):
                copy.write_row((number, one))
        connection.execute(
            "INSERT INTO resource_providers (id, uuid, name, generation, root_id, changed,"
            f" created_at, updated_at) SELECT n + 1, uuid, 'node-' || n, 3, n + 1, 0, {at}, {at}"
            " FROM new ORDER BY n"
        )
        for name, total in TOTALS.items():
            connection.execute(
                "INSERT INTO inventories (provider_id, resource_class, total, reserved, min_unit,"
                " max_unit, step_size, allocation_ratio, used, changed, created_at, updated_at)"
                f" SELECT n + 1, '{name}', {total}, 0, 1, {total}, 1, 1.0, 0, 0, {at}, {at}"
                " FROM new"
            )
        for one in TRAITS:
            connection.execute(f"INSERT INTO provider_traits SELECT n + 1, '{one}' FROM new")
        for step in range(5):
            for number, group in enumerate(GROUPS):
                connection.execute(
                    f"INSERT INTO provider_aggregates SELECT n + 1, '{group}' FROM new"
                    f" WHERE (n + {step}) % {len(GROUPS)} = {number}"
                )
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute("ANALYZE")


def measured(
    service: Served, size: int, seconds: float, filled: str | None = None
) -> dict[str, Any]:
    """Load (or fill the database of that URL), search and claim; return all figures."""
    uuids = [str(uuid.uuid4()) for _ in range(size)]
    empty = memory_mib(service.pid)
    figures: dict[str, Any] = {}
    if filled:
        fill(filled, uuids)
    else:
        start = time.perf_counter()
        failures = in_processes(functools.partial(load, service.port, uuids))
        figures["load_s"] = round(time.perf_counter() - start, 2)
        figures["load_failures"] = sum(failures)
    start = time.perf_counter()
    Client(service.port).must("GET", f"/allocation_candidates?{QUERIES['plain']}")
    figures["first_search_ms"] = round((time.perf_counter() - start) * 1000, 1)
    figures["candidates"] = {
        name: searches(service.port, query, seconds) for name, query in QUERIES.items()
    }
    figures["memory_mib"] = {"empty": empty, "searched": memory_mib(service.pid)}
    for name, some in (("spread", uuids), ("one", uuids[:1])):
        work = functools.partial(claim, service.port, some, seconds)
        figures[f"claims, {name}"] = rate(work, seconds)
    return figures


def ratios(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return how many times faster ours is."""
    said: dict[str, Any] = {"load": round(theirs["load_s"] / mine["load_s"], 1)}
    for name in QUERIES:
        one, other = mine["candidates"][name], theirs["candidates"][name]
        said[f"candidates, {name}"] = round(other["p50_ms"] / one["p50_ms"], 1)
        said[f"time over orjson, {name}"] = round(one["p50_ms"] / one["orjson_ms"], 1)
        said[f"time over json, {name}"] = round(one["p50_ms"] / one["json_ms"], 1)
    for name in ("claims, spread", "claims, one"):
        said[name] = round(mine[name]["per_second"] / max(theirs[name]["per_second"], 0.1), 1)
    return said


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything that was asked for."""
    said: dict[str, Any] = {
        "load_average": os.getloadavg(),
        "cores": os.cpu_count(),
        "fsync": not options.no_fsync,
        "sizes": {},
    }
    with backends.private_folder() as folder, backends.postgres() as server:
        if not options.no_fsync:
            server.execute("ALTER SYSTEM SET fsync = on", "SELECT pg_reload_conf()")
        server.execute("ALTER SYSTEM SET shared_buffers = '256MB'")
        python = options.original or (install(folder / "venv") if options.sizes else "")
        for size in [*options.sizes, *options.ours_only]:
            both = [("ours", ours)]
            if size in options.sizes:
                both.append(("original", original))
            figures: dict[str, Any] = {}
            for name, service in both:
                place = folder / f"{name}-{size}"
                place.mkdir()
                server.execute(f'CREATE DATABASE "{name}-{size}"')
                url = server.url(f"{name}-{size}")
                filled = None if size in options.sizes else url
                with service(url, place, python) as up:
                    figures[name] = measured(up, size, options.seconds, filled)
                print(size, name, json.dumps(figures[name]), file=sys.stderr, flush=True)
            if "original" in figures:
                figures["ratios"] = ratios(figures["ours"], figures["original"])
            said["sizes"][size] = figures
    said["load_average_after"] = os.getloadavg()
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--ours-only", type=int, nargs="*", default=[])
    parser.add_argument("--original")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--no-fsync", action="store_true")
    print(json.dumps(run(parser.parse_args()), indent=2))


if __name__ == "__main__":
    main()

"""Compare placement with OpenStack Placement, on one PostgreSQL in one run; prints JSON.

    python benchmarks/placement_vs_original.py [--sizes 100 1000] [--ours-only 100000]
        [--original PYTHON] [--seconds 5] [--no-fsync] [--only load]

`--ours-only` sizes show how ours grows; their database is filled with SQL. `--only` leaves the
rest out.

The original comes from PyPI into a virtual environment of its own, unless `--original` names the
Python of another with `openstack-placement`, `gunicorn` and `psycopg2-binary`. Both are served by
gunicorn with two workers of four threads, without a token check, on a database of their own of
one private PostgreSQL server, and are asked by the same client processes over keep-alive HTTP.
Beside the times is the CPU of the service, the database and the clients: other work on the
machine changes the times.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.asking import (  # noqa: E402
    GROUPS,
    QUERIES,
    TOTALS,
    TRAITS,
    Client,
    claim,
    in_processes,
    load,
    rate,
    searches,
)
from benchmarks.serving import (  # noqa: E402
    Served,
    cpu_seconds,
    install,
    memory_mib,
    original,
    ours,
)
from tests.functional import backends  # noqa: E402

PHASES = ("load", "candidates", "claims")

Service: TypeAlias = Callable[[str, Path, str], AbstractContextManager[Served]]
"""Runs a service: the URL of its database, its folder, the Python of the original."""


def fill(url: str, uuids: Sequence[str]) -> None:
    """Write the providers into our tables, as `load` creates them through the API."""
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


def cpu(service: Served, database: int) -> dict[str, float]:
    """Return the seconds of CPU that the service and the database have used."""
    return {"service": cpu_seconds(service.pid), "database": cpu_seconds(database)}


def since(before: dict[str, float], service: Served, database: int) -> dict[str, float]:
    """Return the seconds of CPU that they have used since."""
    return {name: round(now - before[name], 2) for name, now in cpu(service, database).items()}


def loaded(service: Served, uuids: Sequence[str], database: int) -> dict[str, Any]:
    """Load through the API; return the time, the failures, and the CPU of all processes."""
    start, before = time.perf_counter(), cpu(service, database)
    clients = in_processes(functools.partial(load, service.port, uuids))
    took = time.perf_counter() - start
    asking = round(sum(one["cpu_s"] for one in clients), 2)
    return {
        "load_s": round(took, 2),
        "load_failures": sum(one["failures"] for one in clients),
        "load_cpu_s": {**since(before, service, database), "clients": asking},
    }


def measured(
    service: Served, size: int, options: argparse.Namespace, database: int, filled: str | None
) -> dict[str, Any]:
    """Load (or fill the database of that URL), search and claim; return all figures."""
    uuids = [str(uuid.uuid4()) for _ in range(size)]
    empty = memory_mib(service.pid)
    figures: dict[str, Any] = {}
    if filled:
        fill(filled, uuids)
    else:
        figures |= loaded(service, uuids, database)
    if "candidates" in options.only:
        start = time.perf_counter()
        Client(service.port).must("GET", f"/allocation_candidates?{QUERIES['plain']}")
        figures["first_search_ms"] = round((time.perf_counter() - start) * 1000, 1)
        figures["candidates"] = {
            name: searches(service.port, query, options.seconds) for name, query in QUERIES.items()
        }
        figures["memory_mib"] = {"empty": empty, "searched": memory_mib(service.pid)}
    if "claims" in options.only:
        for name, some in (("spread", uuids), ("one", uuids[:1])):
            work = functools.partial(claim, service.port, some, options.seconds)
            before = cpu(service, database)
            figures[f"claims, {name}"] = said = rate(work, options.seconds)
            used = sum(since(before, service, database).values())
            said["cpu_ms"] = round(used / max(said["statuses"].get("204", 0), 1) * 1000, 2)
    return figures


def ratios(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return how many times faster ours is."""
    said: dict[str, Any] = {"load": round(theirs["load_s"] / mine["load_s"], 1)}
    cpu, other_cpu = mine["load_cpu_s"], theirs["load_cpu_s"]
    said["load, CPU"] = round(sum(other_cpu.values()) / sum(cpu.values()), 1)
    for name in mine.get("candidates", ()):
        one, other = mine["candidates"][name], theirs["candidates"][name]
        said[f"candidates, {name}"] = round(other["p50_ms"] / one["p50_ms"], 1)
        said[f"time over orjson, {name}"] = round(one["p50_ms"] / one["orjson_ms"], 1)
        said[f"time over json, {name}"] = round(one["p50_ms"] / one["json_ms"], 1)
    for name in ("claims, spread", "claims, one"):
        if name in mine:
            one, other = mine[name], theirs[name]
            said[name] = round(one["per_second"] / max(other["per_second"], 0.1), 1)
            said[f"{name}, CPU"] = round(other["cpu_ms"] / max(one["cpu_ms"], 0.01), 1)
    return said


def compared(
    size: int, options: argparse.Namespace, folder: Path, server: backends.Postgres, python: str
) -> dict[str, Any]:
    """Measure one size."""
    both: list[tuple[str, Service]] = [("ours", ours)]
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
            figures[name] = measured(up, size, options, server.pid, filled)
        print(size, name, json.dumps(figures[name]), file=sys.stderr, flush=True)
    if "original" in figures:
        figures["ratios"] = ratios(figures["ours"], figures["original"])
    return figures


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything that the options ask for."""
    said: dict[str, Any] = {
        "load_average": os.getloadavg(),
        "cores": os.cpu_count(),
        "fsync": not options.no_fsync,
        "sizes": {},
    }
    settings = {"fsync": "off" if options.no_fsync else "on", "shared_buffers": "256MB"}
    with backends.private_folder() as folder, backends.postgres(**settings) as server:
        python = options.original or (install(folder / "venv") if options.sizes else "")
        for size in [*options.sizes, *options.ours_only]:
            said["sizes"][size] = compared(size, options, folder, server, python)
    said["load_average_after"] = os.getloadavg()
    return said


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--ours-only", type=int, nargs="*", default=[])
    parser.add_argument("--original")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--no-fsync", action="store_true")
    parser.add_argument("--only", nargs="*", choices=PHASES, default=PHASES)
    print(json.dumps(run(parser.parse_args()), indent=2))


if __name__ == "__main__":
    main()

"""What metrics cost: recording, its share of a create, and scrapes of a conductor with many hosts.

Fails where recording takes more than a hundredth of a create's CPU, or the median scrape more than
50 ms.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import requests

import db.migrate
from common import clock, codec, ids
from common.metrics import exposition, table
from common.metrics.instruments import Counter, Histogram
from common.metrics.sharing import VARIABLE
from conductor.record_metrics import RecordMetrics
from conductor.store.monitoring import Reader
from conductor.store.transactions import Store
from db import engine, schema
from tests.fixtures import null
from tests.fixtures.compute import a_full_server, a_host, a_service
from tests.functional import backends
from tests.functional.cloud import embedded_cloud, eventually

ROUNDS = 100_000
SCRAPES = 30
#: servers created before they are deleted again: fewer than the quota
AT_ONCE = 8
MOST_SHARE, MOST_SCRAPE_SECONDS = 0.01, 0.05
_RECORDED = re.compile(r"^micronova_\w+?(?:_total|_count)(?:{.*})? (\S+)$", re.MULTILINE)
_CPU = re.compile(r"^process_cpu_seconds_total (\S+)$", re.MULTILINE)


def each(work: Callable[[], None]) -> float:
    """Return the microseconds of one call."""
    began = time.process_time()
    for _ in range(ROUNDS):
        work()
    return (time.process_time() - began) / ROUNDS * 1e6


def recording() -> dict[str, float]:
    """Return microseconds of one recording in this process."""
    counter = Counter("bench_total", "b", ("a", "b"))
    histogram = Histogram("bench_seconds", "b", ("a", "b"))
    return {
        "count_us": round(each(lambda: counter.count("x", "y")), 2),
        "observe_us": round(each(lambda: histogram.observe(0.1, "x", "y")), 2),
    }


def shared_recording() -> dict[str, float]:
    """Return the same in a process whose values are shared with others."""
    with tempfile.TemporaryDirectory() as folder:
        code = (
            "import json; from benchmarks.metrics import recording; print(json.dumps(recording()))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, VARIABLE: folder},
            capture_output=True,
            check=True,
        )
        found: dict[str, float] = json.loads(done.stdout)
        found["files_kib"] = sum(one.stat().st_size for one in Path(folder).iterdir()) / 1024
        return found


def creates(rounds: int, cost_us: float) -> dict[str, float]:
    """Create and delete servers on an embedded cloud; return the share of recording."""
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded_cloud(Path(folder), driver=null.DRIVER) as cloud,
    ):
        compute = cloud.connection().compute
        what = {
            "flavor_id": compute.find_flavor("m1.nano").id,
            "image_id": cloud.connection().image.find_image("cirros").id,
            "networks": "none",
        }
        url = f"http://127.0.0.1:{_metrics_port(cloud.state_dir)}/metrics"

        def some() -> None:
            made = [compute.create_server(name=f"s{n}", **what) for n in range(AT_ONCE)]
            eventually(lambda: all(one.status == "ACTIVE" for one in compute.servers()), 120)
            for one in made:
                compute.delete_server(one)
            eventually(lambda: not list(compute.servers()), 120)

        some()
        before = _sums(url)
        for _ in range(rounds):
            some()
        after = _sums(url)
        count = rounds * AT_ONCE
    recorded, cpu = ((now - then) / count for now, then in zip(after, before, strict=True))
    return {
        "servers": count,
        "recordings_each": round(recorded, 1),
        "cpu_ms_each": round(cpu * 1000, 1),
        "share": round(recorded * cost_us / 1e6 / cpu, 5),
    }


def _metrics_port(state_dir: Path) -> int:
    text = (state_dir / "micronova.conf").read_text(encoding="utf-8")
    return int(text.partition("[metrics]")[2].partition("port = ")[2].split()[0])


def _sums(url: str) -> tuple[float, float]:
    text = requests.get(url, timeout=30).text
    return sum(map(float, _RECORDED.findall(text))), float(_CPU.findall(text)[0])


def fill(url: str, hosts: int, servers: int) -> None:
    """Make a database with so many hosts in five clusters, and so many servers on them."""
    db.migrate.upgrade(url)
    writer = engine.writer(url)
    names = [f"pve{number}" for number in range(hosts)]
    with writer.begin() as connection:
        hosts_of = [a_host(name, **_host(n)) for n, name in enumerate(names)]
        services = [a_service(name) for name in names]
        for rows in (hosts_of, services, _servers(names, servers)):
            for position in range(0, len(rows), 500):
                connection.execute(rows[0][0].insert(), [row for _, row in rows[position:][:500]])
        connection.execute(schema.operations.insert(), list(_operations(1000)))
    writer.dispose()


def _host(number: int) -> dict[str, Any]:
    """Return the columns of a host, with facts as large as a real one's: about 3 KiB."""
    storages = [
        {"name": f"storage-{n}", "type": "lvmthin", "shared": False, "active": True}
        | {"total_gib": 1000, "available_gib": 500, "content": ["images", "rootdir"]}
        for n in range(6)
    ]
    facts = {
        "storages": storages,
        "cpu_flags": ["fpu", "vme", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic"] * 12,
        "images": [ids.named("image", str(n)) for n in range(10)],
        "traits": [f"HW_CPU_X86_{n}" for n in range(30)],
        "online": True,
        "healthy": True,
    }
    return {"cluster": f"c{number % 5}", "facts": facts}


def _servers(names: list[str], count: int) -> list[Any]:
    return [
        a_full_server(number, host=names[number % len(names)], cluster=f"c{number % 5}")
        for number in range(1, count + 1)
    ]


def _operations(count: int) -> Iterator[dict[str, Any]]:
    now = clock.utcnow()
    for number in range(1, count + 1):
        yield {
            "id": number,
            "resource_type": "server",
            "resource_id": "",
            "project_id": "demo",
            "user_id": "demo",
            "request_id": f"req-{number}",
            "action": ("create", "delete", "resize")[number % 3],
            "state": "running",
            "lease_owner": "compute:w1",
            "lease_expires_at": now + datetime.timedelta(seconds=60),
            "context": {},
            "params": {},
            "plan": {},
            "started_at": now,
            "updated_at": now,
        }


def scrapes(url: str) -> dict[str, float]:
    """Read the record, and scrape while it is read again and again."""
    store = Store(engine.writer(url), engine.reader(url))
    reader, began = Reader(store, 60.0), time.monotonic()
    reader.read()
    reading = time.monotonic() - began
    cpu = time.process_time()
    began = time.monotonic()
    reader.read()
    again = time.monotonic() - began
    cpu = time.process_time() - cpu
    shown = RecordMetrics(store, 1.0, 60.0)
    exposition.text()
    seconds = []
    for _ in range(SCRAPES):
        began = time.monotonic()
        text = exposition.text()
        seconds.append(time.monotonic() - began)
        time.sleep(0.1)
    assert table.CLUSTER_HOSTS.name.encode() in text
    del shown
    return {
        "first_read_ms": round(reading * 1000, 1),
        "read_again_ms": round(again * 1000, 1),
        "read_again_cpu_ms": round(cpu * 1000, 1),
        "scrape_median_ms": round(statistics.median(seconds) * 1000, 1),
        "scrape_worst_ms": round(max(seconds) * 1000, 1),
        "kib": round(len(text) / 1024, 1),
    }


def at_scale(hosts: int, servers: int) -> dict[str, Mapping[str, float]]:
    """Return scrapes on SQLite, and on PostgreSQL where it is installed."""
    found: dict[str, Mapping[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/cloud.sqlite"
        fill(url, hosts, servers)
        found["sqlite"] = scrapes(url)
    if backends.INITDB and backends.POSTGRES:
        with backends.postgres() as server:
            server.execute("CREATE DATABASE bench")
            fill(server.url("bench"), hosts, servers)
            found["postgresql"] = scrapes(server.url("bench"))
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=8, help="of eight creates and deletes")
    given = parser.parse_args()
    alone = recording()
    cost = (alone["count_us"] + alone["observe_us"]) / 2
    found = {
        "recording": alone,
        "recording_shared": shared_recording(),
        "create_and_delete": creates(given.rounds, cost) if given.rounds else {},
        "hosts": given.hosts,
        "record": at_scale(given.hosts, given.servers),
    }
    print(codec.dumps(found))
    slow = [one["scrape_median_ms"] / 1000 for one in found["record"].values()]
    share = found["create_and_delete"].get("share", 0.0)
    return int(share > MOST_SHARE or max(slow) > MOST_SCRAPE_SECONDS)


if __name__ == "__main__":
    sys.exit(main())

"""Measure a create beside the history of a large cloud, as JSON: ``python -m benchmarks.history``.

All services run in this process, without a hypervisor, on a private PostgreSQL. Servers are
created and deleted one by one; then every table of history gets a million rows, and the same is
done again. CPU is of this process and of PostgreSQL, per server. ``slower`` is the second divided
by the first. At last the details of all these operations are deleted, as they are once they are
old: ``forget`` is the CPU of that per operation.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import common.rpc.messaging  # noqa: F401  # first: it chooses threads
from benchmarks.reading.processes import cpu_seconds, tree
from common import clock
from conductor.engine.history import BATCH
from conductor.store.ledger import history
from db import schema
from tests.functional import backends
from tests.functional.test_costs import Cloud
from tests.functional.waiting import eventually

ROWS = 1_000_000
SERVERS = 50

HISTORY = (
    schema.servers,
    schema.operations,
    schema.operation_events,
    schema.transitions,
    schema.faults,
    schema.decisions,
    schema.refusals,
    schema.notification_outbox,
    schema.audits,
    schema.findings,
)
"""The tables that every operation, refusal, notification or audit adds to; and deleted servers."""

_MONTHS = "now() AT TIME ZONE 'UTC' - interval '1 day' - mod(n, 8000000) * interval '1 second'"
#: what a row of history has in columns of these names
_NAMED = {
    "state": "'done'",
    "vm_state": "'deleted'",
    "resource_type": "'server'",
    "lease_owner": "NULL",
    "lease_expires_at": "NULL",
    "not_before": "NULL",
    "deadline": "NULL",
    "task_state": "NULL",
    "set_aside_at": "now() AT TIME ZONE 'UTC'",
}


def fill(connection: sa.Connection, rows: int) -> None:
    """Add so many rows to each table of history, as those of ended operations."""
    for table in HISTORY:
        insert(connection, table, rows, _NAMED)


def insert(
    connection: sa.Connection, table: sa.Table, rows: int, named: Mapping[str, str]
) -> None:
    """Add rows to a table: column → SQL expression of a row's number ``n``, from 1 on. Other
    columns have something of their type."""
    columns = [
        column for column in table.columns if column.name in named or not _by_itself(column)
    ]
    names = ", ".join(f'"{column.name}"' for column in columns)
    values = ", ".join(
        named.get(column.name) or _value(column, connection.dialect) for column in columns
    )
    connection.exec_driver_sql(
        f"INSERT INTO {table.name} ({names}) SELECT {values} FROM generate_series(1, {rows}) AS n"
    )


def _by_itself(column: sa.Column[Any]) -> bool:
    return column.primary_key and column.autoincrement is not False and column.name == "id"


def _value(column: sa.Column[Any], dialect: sa.Dialect) -> str:
    """Return an SQL expression of the row's number ``n``."""
    kind = column.type.compile(dialect=dialect).upper()
    if "JSON" in kind:
        return "'{}'"
    if "TIMESTAMP" in kind:
        return _MONTHS
    if "BOOL" in kind:
        return "false"
    if "INT" in kind:
        return "1000000000 + n" if column.name == "operation_id" or column.unique else "1"
    if "FLOAT" in kind or "DOUBLE" in kind or "NUMERIC" in kind:
        return "1"
    length = getattr(column.type, "length", None) or 255
    return f"left('h' || md5(n::text || '{column.name}'), {length})"


@contextlib.contextmanager
def running(folder: Path, postgres: backends.Postgres) -> Iterator[Cloud]:
    """Run all services in this process on PostgreSQL until the block ends."""
    postgres.execute("CREATE DATABASE cloud", "CREATE DATABASE placement")
    cloud = Cloud(folder, [postgres.url("cloud"), postgres.url("placement")])
    cloud.start()
    try:
        eventually(cloud.ready)
        yield cloud
    finally:
        cloud.stop()


def create_and_delete(cloud: Cloud, image: str) -> None:
    """Create a server and delete it; return once it is gone."""
    body = {"server": {"name": "s", "flavorRef": "1", "imageRef": image, "networks": "none"}}
    uuid = cloud.call("POST", "/v2.1/servers", json=body)["server"]["id"]

    def state() -> str:
        with cloud.reader.connect() as connection:
            mine = schema.servers.c.uuid == uuid
            return str(connection.scalar(sa.select(schema.servers.c.vm_state).where(mine)))

    eventually(lambda: state() == "active")
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")
    eventually(lambda: state() == "deleted")


def measure(cloud: Cloud, image: str, database: int, servers: int) -> dict[str, float]:
    """Return milliseconds of CPU per server, of this process and of PostgreSQL."""
    create_and_delete(cloud, image)
    processes = {"postgresql": tree(database)}
    own, before = time.process_time(), cpu_seconds(processes)
    for _ in range(servers):
        create_and_delete(cloud, image)
    used = cpu_seconds({"postgresql": tree(database)})["postgresql"] - before["postgresql"]
    return {
        "services_cpu_ms": round((time.process_time() - own) / servers * 1000, 2),
        "postgresql_cpu_ms": round(used / servers * 1000, 2),
    }


def forget(engine: sa.Engine, database: int) -> dict[str, float]:
    """Delete all details as the conductor does, and return milliseconds of CPU per operation."""
    counted = 0
    later = clock.after(1)
    processes = {"postgresql": tree(database)}
    own, before = time.process_time(), cpu_seconds(processes)
    done = BATCH
    while done == BATCH:
        with engine.begin() as connection:
            done = history.delete_old(connection, later, None, BATCH)
        counted += done
    used = cpu_seconds({"postgresql": tree(database)})["postgresql"] - before["postgresql"]
    return {
        "operations": counted,
        "services_cpu_ms": round((time.process_time() - own) / max(counted, 1) * 1000, 3),
        "postgresql_cpu_ms": round(used / max(counted, 1) * 1000, 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.history")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--servers", type=int, default=SERVERS)
    given = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="micronova-")))
        postgres = stack.enter_context(backends.postgres())
        cloud = stack.enter_context(running(folder, postgres))
        with cloud.reader.connect() as reading:
            image = str(reading.scalar(sa.select(schema.images.c.id).limit(1)))
        measured = functools.partial(measure, cloud, image, postgres.pid, given.servers)
        before = measured()
        engine = sa.create_engine(postgres.url("cloud"))
        began = time.monotonic()
        with engine.begin() as connection:
            fill(connection, given.rows)
        filled = time.monotonic() - began
        # Else autovacuum does so during the second measurement.
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")
            connection.exec_driver_sql("CHECKPOINT")
        after = measured()
        forgotten = forget(engine, postgres.pid)
        engine.dispose()
    total = sum(before.values()), sum(after.values())
    found = {
        "rows_of_each_table": given.rows,
        "tables": [table.name for table in HISTORY],
        "fill_seconds": round(filled, 1),
        "before": before,
        "after": after,
        "forget": forgotten,
        "slower": round(total[1] / max(total[0], 0.01), 2),
    }
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

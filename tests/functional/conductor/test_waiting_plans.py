"""What PostgreSQL does for who waits for room grows with those that wait, not with their square.

Right after many began to wait it has no statistics, and takes each table for nearly empty: what it
then does is counted, not what it plans.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from benchmarks import history
from common.resources.states import OperationState, VmState
from conductor.store.servers import waiting
from db import migrate, schema
from db.engine import writer
from tests.functional import backends
from tests.functional.test_history_plans import nodes

pytestmark = [pytest.mark.timeout(2400), pytest.mark.database]

WAIT = 500
_ITS = "lpad(n::text, 36, '0')"
ROWS: dict[sa.Table, dict[str, str]] = {
    schema.operations: {
        "id": "n",
        "resource_type": "'server'",
        "resource_id": _ITS,
        "state": f"'{OperationState.QUEUED}'",
        "lease_owner": "NULL",
    },
    schema.servers: {
        "uuid": _ITS,
        "operation_id": "n",
        "vm_state": f"'{VmState.BUILDING}'",
        "host": "NULL",
        "deleted_at": "NULL",
    },
    schema.waiting_builds: {"operation_id": "n", "server_uuid": _ITS, "kept": "NULL"},
}


@pytest.fixture(scope="module")
def full() -> Iterator[sa.Engine]:
    """A database in which many wait, and nothing has been analyzed."""
    with backends.postgres(autovacuum="off") as postgres:
        postgres.execute("CREATE DATABASE cloud")
        migrate.upgrade(postgres.url("cloud"))
        engine = writer(postgres.url("cloud"))
        with engine.begin() as connection:
            for table, named in ROWS.items():
                history.insert(connection, table, WAIT, named)
        yield engine
        engine.dispose()


def rows_of(connection: sa.Connection, ask: Callable[[sa.Connection], Any]) -> int:
    """How many rows the steps of a question's statement passed on or threw away, at most."""
    ran: list[tuple[str, Any]] = []

    def note(_one: Any, _cursor: Any, statement: str, values: Any, *_rest: Any) -> None:
        ran.append((statement, values))

    sa.event.listen(connection, "before_cursor_execute", note)
    try:
        ask(connection)
    finally:
        sa.event.remove(connection, "before_cursor_execute", note)
    ((statement, values),) = ran
    asked = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
    (found,) = connection.exec_driver_sql(asked, values).one()
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return max(
        node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Join Filter", 0))
        for node in nodes(plan)
    )


@pytest.mark.parametrize(
    "ask",
    [
        waiting.over,
        lambda connection: waiting.counts(connection, "p", 0),
        lambda connection: waiting.kept_from(connection, [0]),
    ],
    ids=["over", "counts", "kept_from"],
)
def test_each_row_is_looked_at_once(full: sa.Engine, ask: Callable[[sa.Connection], Any]) -> None:
    with full.connect() as connection:
        assert rows_of(connection, ask) <= 2 * WAIT


def test_all_of_them_wait(full: sa.Engine) -> None:
    with full.connect() as connection:
        assert not waiting.over(connection)
        assert waiting.counts(connection, "p", 1) == (0, WAIT - 1)

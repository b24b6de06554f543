"""What history is there doesn't slow a create or a delete down: no statement reads a whole table.

The statements are those that PostgreSQL gets when a server is created and deleted, with their
values; the tables of history have rows enough for a plan that reads them whole to lose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from benchmarks import history
from db.engine import writer
from tests.functional import backends

ROWS = 20_000
pytestmark = [pytest.mark.timeout(2400), pytest.mark.database]
NAMES = {table.name for table in history.HISTORY}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def plan_of(connection: sa.Connection, statement: str, values: Any) -> dict[str, Any]:
    (found,) = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values).one()
    plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan


def test_no_statement_of_a_create_or_a_delete_reads_a_whole_table_of_history(
    tmp_path: Path,
) -> None:
    ran: dict[str, Any] = {}

    def note(
        connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool
    ) -> None:
        if "placement" not in str(connection.engine.url):
            ran.setdefault(statement, values[0] if many else values)

    with backends.postgres() as postgres, history.running(tmp_path, postgres) as cloud:
        engine = writer(postgres.url("cloud"))
        with engine.begin() as connection:
            history.fill(connection, ROWS)
        with cloud.reader.connect() as connection:
            image = str(connection.scalar(sa.text("SELECT id FROM images LIMIT 1")))
        sa.event.listen(sa.Engine, "before_cursor_execute", note)
        try:
            history.create_and_delete(cloud, image)
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", note)
        asked = {
            statement: values
            for statement, values in ran.items()
            if statement.split(None, 1)[0] in {"SELECT", "UPDATE", "DELETE", "WITH", "INSERT"}
        }
        assert len(asked) > 20
        with engine.connect() as connection:
            for statement, values in asked.items():
                for node in nodes(plan_of(connection, statement, values)):
                    whole = node["Node Type"] == "Seq Scan"
                    assert not (whole and node["Relation Name"] in NAMES), statement
        engine.dispose()

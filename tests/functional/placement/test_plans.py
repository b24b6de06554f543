"""What PostgreSQL plans for the statements that every request makes: nothing reads a whole table.

Plans are kept, so those that are made while the tables are empty have to be good for full ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from placement.db import fast
from placement.db.engine import Database
from placement.db.prepared import Statement

STATEMENTS = {name: one for name, one in vars(fast).items() if isinstance(one, Statement)}
WHOLE = {"Seq Scan", "Hash Join", "Merge Join"}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a plan's steps."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def planned(connection: Connection, statement: Statement) -> dict[str, Any]:
    """Return the plan that is kept for a statement."""
    connection.exec_driver_sql("SET plan_cache_mode = force_generic_plan")
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PREPARE one AS {statement.text}")
    values = ", ".join("NULL" for _ in set(re.findall(r"\$\d", statement.text)))
    (explained,) = driver.execute(f"EXPLAIN (FORMAT JSON) EXECUTE one({values})").fetchone()
    driver.execute("DEALLOCATE one")
    value = json.loads(explained) if isinstance(explained, str) else explained
    found: dict[str, Any] = value[0]["Plan"]
    return found


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_nothing_reads_a_whole_table(database_url: str) -> None:
    database = Database(database_url)
    assert len(STATEMENTS) == 7
    for name, statement in STATEMENTS.items():
        plan = database.read(lambda connection, one=statement: planned(connection, one))
        for node in nodes(plan):
            assert node["Node Type"] not in WHOLE, (name, node)
            if node["Node Type"] in ("Index Scan", "Index Only Scan"):
                assert "Index Cond" in node, (name, node)
    database.close()

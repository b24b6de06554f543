"""Conditions on what a JSON column has."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from db.reads.properties import having

TABLE = sa.table("t", sa.column("meta", sa.JSON))


@pytest.mark.parametrize(
    ("name", "found"), [("a", True), ("a b", True), ("b", False), ('a"', False), ("a\\", False)]
)
def test_names_that_no_path_can_have_are_nowhere(name: str, found: bool) -> None:
    with sa.create_engine("sqlite://").connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (meta JSON)")
        connection.execute(TABLE.insert(), {"meta": {"a": "1", "a b": "1", "b": "2"}})
        query = sa.select(sa.func.count()).where(*having(TABLE.c.meta, {name: "1"}))
        assert connection.execute(query.select_from(TABLE)).scalar_one() == found
    (condition,) = having(TABLE.c.meta, {name: "1"})
    assert isinstance(condition, sa.sql.elements.False_) == bool(set('"\\') & set(name))

"""Which failures of a read say that the database is away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from common.errors import Unavailable
from db.reading import reading


@pytest.fixture
def empty() -> Iterator[sa.Engine]:
    engine = sa.create_engine("sqlite://")
    yield engine
    engine.dispose()


@pytest.mark.parametrize("statement", ["SELEC 1", "SELECT missing", "SELECT missing(1)"])
def test_a_wrong_statement_is_not_the_databases_fault(empty: sa.Engine, statement: str) -> None:
    with pytest.raises(exc.OperationalError), reading(empty) as connection:
        connection.exec_driver_sql(statement)


def test_a_database_without_tables_is_not_available(empty: sa.Engine) -> None:
    with pytest.raises(Unavailable), reading(empty) as connection:
        connection.exec_driver_sql("SELECT 1 FROM servers")

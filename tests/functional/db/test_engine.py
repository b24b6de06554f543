from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from db import engine


def test_an_error_does_not_show_what_was_to_be_written(tmp_path: Path) -> None:
    with (
        engine.writer(f"sqlite:///{tmp_path}/x").connect() as connection,
        pytest.raises(sa.exc.DBAPIError) as refused,
    ):
        connection.execute(
            sa.text("INSERT INTO nowhere VALUES (:secret)"), {"secret": "pass phrase"}
        )
    assert "pass phrase" not in str(refused.value)


@pytest.mark.parametrize(
    ("open_", "url", "level"),
    [
        (engine.writer, "postgresql+psycopg", "READ COMMITTED"),
        (engine.reader, "postgresql+psycopg", "AUTOCOMMIT"),
        (engine.writer, "mysql+pymysql", "READ COMMITTED"),
        (engine.reader, "mysql+pymysql", "READ COMMITTED"),
    ],
)
def test_what_is_read_after_a_lock_is_what_is_there_then(
    open_: Callable[[str], sa.Engine], url: str, level: str
) -> None:
    """MariaDB would read what was there when the transaction began."""
    opened = open_(f"{url}://nobody@127.0.0.1:9/nothing")
    assert opened.dialect._on_connect_isolation_level == level

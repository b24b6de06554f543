from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from db import engine


def test_an_error_does_not_tell_what_was_to_be_written(tmp_path: Path) -> None:
    with (
        engine.writer(f"sqlite:///{tmp_path}/x").connect() as connection,
        pytest.raises(sa.exc.DBAPIError) as refused,
    ):
        connection.execute(
            sa.text("INSERT INTO nowhere VALUES (:secret)"), {"secret": "pass phrase"}
        )
    assert "pass phrase" not in str(refused.value)


def test_what_is_read_after_a_lock_is_what_is_there_then() -> None:
    """MariaDB would read what was there when the transaction began."""
    for open_ in (engine.writer, engine.reader):
        opened = open_("postgresql+psycopg://nobody@127.0.0.1:9/nothing")
        assert opened.dialect._on_connect_isolation_level == "READ COMMITTED"

"""Backups of SQLite databases: the named file is copied, whatever its name has."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from launcher.backups import dumps


@pytest.mark.parametrize("folder", ["a#b", "a%2Fb", "a b", "a%b", "a?b", "é+&;'"])
def test_the_database_of_the_name_is_copied(tmp_path: Path, folder: str) -> None:
    file = tmp_path / folder / "cloud.sqlite"
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE mine (one INTEGER)")
    dumps.dump(f"sqlite:///{quote(str(file))}", tmp_path / "out")
    with closing(sqlite3.connect(tmp_path / "out")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]

"""``micronova backup`` and ``micronova restore --from``: what they write, refuse, and put back."""

from __future__ import annotations

import io
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

import db.migrate
import placement.db.migrate
from cli.main import Program
from common import clock
from db import engine, schema
from db.reads import cloud
from tests.functional.db.conftest import (
    PostgresServer,
    postgres_server,  # noqa: F401
    postgres_url,  # noqa: F401
)


class Installation:
    """A configuration with two databases, and the commands that read it."""

    def __init__(self, folder: Path, url: str, placement_url: str) -> None:
        self.url, self.folder = url, folder
        db.migrate.upgrade(url)
        placement.db.migrate.upgrade(placement_url)
        self.file = folder / "micronova.conf"
        self.file.write_text(
            f"[database]\nconnection = {url}\n[placement_database]\nconnection = {placement_url}\n"
        )

    def run(self, *words: str) -> tuple[int, str]:
        said = io.StringIO()
        program = Program(stdout=said, stderr=said)
        code = program.run([words[0], "--config-file", str(self.file), *words[1:]])
        return code, said.getvalue()

    def keypairs(self) -> set[str]:
        with self.reading() as connection:
            return set(connection.scalars(sa.select(schema.keypairs.c.name)))

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        reader = engine.reader(self.url, 1)
        with reader.connect() as connection:
            yield connection
        reader.dispose()

    def write(self, statement: sa.Executable) -> None:
        writer = engine.writer(self.url, 1)
        with writer.begin() as connection:
            connection.execute(statement)
        writer.dispose()

    def add_keypair(self, name: str) -> None:
        self.write(
            schema.keypairs.insert().values(
                user_id="u",
                name=name,
                type="ssh",
                public_key="k",
                fingerprint="f",
                created_at=clock.utcnow(),
            )
        )


@pytest.fixture
def sqlite(tmp_path: Path) -> Installation:
    cloud_file, placement_file = tmp_path / "cloud.sqlite", tmp_path / "placement.sqlite"
    return Installation(tmp_path, f"sqlite:///{cloud_file}", f"sqlite:///{placement_file}")


@pytest.fixture
def any_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite")
        return
    cloud_url = request.getfixturevalue("postgres_url")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    server.execute("CREATE DATABASE saved_placement")
    other = sa.make_url(cloud_url).set(database="saved_placement")
    yield Installation(tmp_path, cloud_url, other.render_as_string(hide_password=False))
    server.execute("DROP DATABASE saved_placement WITH (FORCE)")


@pytest.mark.parametrize("any_database", ["sqlite", "postgresql"], indirect=True)
def test_a_backup_is_put_back_and_holds_what_destroys(
    any_database: Installation, tmp_path: Path
) -> None:
    there, saved = any_database, tmp_path / "saved"
    there.add_keypair("before")
    code, said = there.run("backup", str(saved))
    assert code == 0, said
    manifest = json.loads((saved / "manifest.json").read_text())
    with there.reading() as connection:
        assert manifest["cloud_id"] == cloud.identity(connection).cloud_id
    assert manifest["revisions"] == {
        "cloud": db.migrate.head(),
        "placement": placement.db.migrate.head(),
    }
    assert set(manifest["files"]) == {"cloud.dump", "placement.dump"}
    assert (saved.stat().st_mode & 0o777, (saved / "cloud.dump").stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )
    there.add_keypair("since")
    code, said = there.run("restore", "--from", str(saved))
    assert code == 0 and "Nothing was done" in said
    assert there.keypairs() == {"before", "since"}
    code, said = there.run("restore", "--from", str(saved), "--apply")
    assert code == 0, said
    assert there.keypairs() == {"before"}
    with there.reading() as connection:
        assert manifest["made_at"] in str(cloud.held_because(connection))


def test_the_former_database_is_set_aside(sqlite: Installation, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    assert sqlite.run("backup", str(saved))[0] == 0
    sqlite.add_keypair("since")
    code, said = sqlite.run("restore", "--from", str(saved), "--apply")
    assert code == 0
    former = tmp_path / "cloud.sqlite.replaced1"
    assert str(former) in said
    with closing(sqlite3.connect(former)) as connection:
        assert connection.execute("SELECT name FROM keypairs").fetchall() == [("since",)]


def test_a_database_that_is_written_to_is_dumped_as_it_was_at_one_moment(
    sqlite: Installation, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "cloud.sqlite")) as open_one:
        open_one.execute("BEGIN IMMEDIATE")
        open_one.execute("UPDATE cloud_identity SET epoch_base = 77")
        assert sqlite.run("backup", str(tmp_path / "saved"))[0] == 0
    assert json.loads((tmp_path / "saved/manifest.json").read_text())["epoch"] == 0


def test_an_existing_folder_is_refused(sqlite: Installation, tmp_path: Path) -> None:
    code, said = sqlite.run("backup", str(tmp_path))
    assert code == 1 and "gets a folder of its own" in said


def change(saved: Path, **values: object) -> None:
    file = saved / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize(
    ("break_it", "sentence"),
    [
        (lambda saved: (saved / "manifest.json").unlink(), "is no complete backup"),
        (lambda saved: (saved / "manifest.json").write_text("{"), "can't be read"),
        (lambda saved: (saved / "cloud.dump").unlink(), "lacks its file cloud.dump"),
        (lambda saved: (saved / "cloud.dump").write_bytes(b"x"), "its sum differs"),
        (lambda saved: change(saved, revisions={"cloud": "9999"}), "this release needs"),
        (lambda saved: change(saved, format=2), "is of format 2"),
        (lambda saved: change(saved, files={"../x": "0"}), "outside of the backup"),
        (lambda saved: change(saved, cloud_id="another"), "is of another cloud"),
    ],
)
def test_what_is_no_backup_of_this_cloud_is_refused(
    sqlite: Installation, tmp_path: Path, break_it: object, sentence: str
) -> None:
    saved = tmp_path / "saved"
    assert sqlite.run("backup", str(saved))[0] == 0
    sqlite.add_keypair("since")
    break_it(saved)  # type: ignore[operator]
    code, said = sqlite.run("restore", "--from", str(saved), "--apply")
    assert code == 1 and sentence in said, said
    assert sqlite.keypairs() == {"since"}


def test_a_running_conductor_is_named(sqlite: Installation, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    assert sqlite.run("backup", str(saved))[0] == 0
    now = clock.utcnow()
    sqlite.write(
        schema.leases.insert().values(name="sign conductor-1", owner="conductor-1", expires_at=now)
    )
    code, said = sqlite.run("restore", "--from", str(saved), "--apply")
    assert code == 1 and "Conductors still run (conductor-1)" in said


def test_conductors_that_ran_at_the_backup_do_not_run_once_it_is_put_back(
    sqlite: Installation, tmp_path: Path
) -> None:
    """Else it couldn't be put back twice, and the first start wouldn't compare anything."""
    saved, name = tmp_path / "saved", schema.leases.c.name == "sign conductor-1"
    sign = {"name": "sign conductor-1", "owner": "conductor-1", "expires_at": clock.utcnow()}
    sqlite.write(schema.leases.insert().values(**sign))
    assert sqlite.run("backup", str(saved))[0] == 0
    sqlite.write(schema.leases.delete().where(name))
    for _ in range(2):
        code, said = sqlite.run("restore", "--from", str(saved), "--apply")
        assert code == 0, said


def test_no_password_is_on_a_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pg_dump gets it in its environment."""
    from launcher.backups import dumps

    seen = tmp_path / "seen"
    program = tmp_path / "pg_dump"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {seen}\nenv | grep ^PG >> {seen}\n'
        'for one in "$@"; do case $one in --file=*) : > "${one#--file=}";; esac; done\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PGSERVICE", "of-the-operator")
    url = (
        "postgresql+psycopg://micronova:s3cret@/cloud?host=db1:5432&host=db2:5433&sslmode=require"
    )
    dumps.dump(url, tmp_path / "out")
    arguments, *environment = seen.read_text().splitlines()
    assert "s3cret" not in arguments
    assert {"PGPASSWORD=s3cret", "PGHOST=db1,db2", "PGPORT=5432,5433"} <= set(environment)
    assert "PGSSLMODE=require" in environment
    assert not any(one.startswith("PGSERVICE") for one in environment)

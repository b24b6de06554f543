"""`micronova status upgrade-check`: what prevents an upgrade, and the codes of nova-status."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from conductor.store.hosts import registry
from db import engine, migrate, schema
from placement.db import migrate as placement_migrate
from tests.functional import programs


@dataclass
class Cloud:
    """Two databases, and a file that names them."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "micronova.conf"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/cloud.sqlite"

    def configure(self, more: str = "") -> None:
        placement = f"sqlite:///{self.folder}/placement.sqlite"
        self.file.write_text(
            f"[database]\nconnection = {self.url}\n"
            f"[placement_database]\nconnection = {placement}\n{more}"
        )
        self.file.chmod(0o600)

    def write(self, work: Callable[[sa.Connection], object]) -> None:
        writer = engine.writer(self.url)
        with writer.begin() as connection:
            work(connection)
        writer.dispose()

    def check(self, *words: str) -> tuple[int, str]:
        command = ["status", "upgrade-check", "--config-file", str(self.file), *words]
        done = programs.run("micronova", command, dict(os.environ))
        return done.returncode, done.stdout

    def results(self) -> tuple[int, dict[str, tuple[int, str]]]:
        code, shown = self.check("--json")
        rows = json.loads(shown)["checks"]
        return code, {one["check"]: (one["result"], one["details"]) for one in rows}


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    made = Cloud(tmp_path)
    made.configure()
    migrate.upgrade(made.url)
    placement_migrate.upgrade(f"sqlite:///{tmp_path}/placement.sqlite")
    return made


def operation(number: int, **values: Any) -> dict[str, Any]:
    now = clock.utcnow()
    row = {"id": number, "resource_type": "server", "resource_id": "s", "project_id": "p"}
    row |= {"user_id": "u", "request_id": f"req-{number}", "action": "stop", "state": "queued"}
    row |= {"context": {}, "params": {}, "plan": {}, "started_at": now, "updated_at": now}
    return row | values


def test_a_cloud_that_is_fit(cloud: Cloud) -> None:
    code, shown = cloud.check()
    assert code == 0
    lines = shown.splitlines()
    assert lines[1].startswith("| Upgrade Check Results ")
    assert shown.count("| Result: Success ") == 8
    assert "It is at r0001_initial: nothing is to be done." in shown


def test_an_empty_database_and_an_option_that_is_gone(cloud: Cloud) -> None:
    (cloud.folder / "placement.sqlite").unlink()
    cloud.configure("[conductor]\nretry_for_ever = true\n")
    code, found = cloud.results()
    assert code == 1
    assert found["Placement database"] == (1, "It is empty: run 'micronova db upgrade'.")
    assert found["Configuration"] == (
        1,
        f"{cloud.file}: this release has no [conductor] retry_for_ever; it has no effect.",
    )
    assert not (cloud.folder / "placement.sqlite").exists()


def test_operations_that_this_release_cannot_continue(cloud: Cloud) -> None:
    rows = [
        operation(1),
        operation(2, action="teleport"),
        operation(3, plan={"target": {"host": 7}}),
        operation(4, action="teleport", state="done"),
    ]
    cloud.write(lambda c: c.execute(schema.operations.insert(), rows))
    code, found = cloud.results()
    assert (code, found["Operations"][0]) == (2, 2)
    assert found["Operations"][1].startswith(
        "2 of 3 under way can't be read by this release: 2 (teleport), 3 (stop)."
    )


def test_services_of_other_releases(cloud: Cloud) -> None:
    def result(version: str) -> tuple[int, str]:
        cloud.write(
            lambda c: registry.seen(c, "nova-conductor", ["a"], worker="a", version=version)
        )
        return cloud.results()[1]["Services"]

    code, said = result("0.0.9")
    assert (code, "nova-conductor a (0.0.9)" in said) == (2, True)
    code, said = result("99.0.0")
    assert (code, "They are newer than this release" in said) == (1, True)


def test_a_database_that_was_contracted_for_a_newer_release(cloud: Cloud) -> None:
    def contract(connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE alembic_contracted (version_num VARCHAR(32))")
        connection.exec_driver_sql("INSERT INTO alembic_contracted VALUES ('c9999_later')")

    cloud.write(contract)
    code, found = cloud.results()
    assert (code, found["Cloud database"][0]) == (2, 2)
    assert "was contracted by a newer release, to c9999_later" in found["Cloud database"][1]


def test_a_record_that_was_put_back_is_decided_about_first(cloud: Cloud) -> None:
    held = {"held_at": clock.utcnow(), "held_because": {"made_at": "yesterday"}}
    cloud.write(lambda c: c.execute(schema.cloud_identity.update().values(**held)))
    code, found = cloud.results()
    assert (code, found["Restored record"][0]) == (1, 1)
    assert "micronova restore --apply" in found["Restored record"][1]


def test_what_does_not_answer_is_a_failure(cloud: Cloud) -> None:
    cloud.file.write_text(
        "[database]\nconnection = postgresql+psycopg://me:hidden-word@127.0.0.1:1/nowhere\n"
    )
    code, found = cloud.results()
    assert (code, found["Cloud database"][0]) == (2, 2)
    assert "hidden-word" not in str(found)
    cloud.file.write_text("[DEFAULT]\ndebug = perhaps\n")
    code, found = cloud.results()
    assert (code, list(found)) == (2, ["Configuration"])

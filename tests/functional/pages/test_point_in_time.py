"""Both databases go back to a moment, by the lines of docs/operate.md, while a cloud uses them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.deployment_page import REPLICATOR
from tests.functional import backends, postgres_pair, programs
from tests.functional.client import Client, assert_nothing_is_left, statuses
from tests.functional.distributed import DistributedCloud, distributed_cloud
from tests.functional.postgres_pair import PG_BASEBACKUP, Member
from tests.functional.test_two_clouds import addresses
from tests.functional.waiting import eventually
from tests.pages import block

pytestmark = [pytest.mark.distributed, pytest.mark.long, pytest.mark.timeout(2400)]

PAGE = "docs/operate.md"
ARCHIVE, RECOVERY = ((PAGE, "text", one) for one in ("archive_mode", "recovery_target_time"))
BACK_UP, PUT_BACK = ((PAGE, "", one) for one in ("pg_basebackup", "recovery.signal"))
MOMENT = "2026-11-30 14:05:00+00"
WAIT_SECONDS = 120


@dataclass(frozen=True)
class Place:
    """The folders of a machine with PostgreSQL, all of the user postgres."""

    folder: Path

    def configure(self, member: Member, *which: str, moment: str = MOMENT) -> None:
        """Add what the page prints to the server's configuration."""
        text = self.placed(member, block(*which)).replace(MOMENT, moment)
        with (member.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")

    def run(self, member: Member, *which: str) -> None:
        """Run the page's commands as the user postgres."""
        postgres_pair.run(member.who, ["bash", "-ec", self.placed(member, block(*which))])

    def placed(self, member: Member, text: str) -> str:
        """Put this machine's paths and port into a printed text."""
        for printed, ours in {
            "/srv/": f"{self.folder}/",
            "/var/lib/postgresql/15/main": str(member.data),
            "host=db1 port=5432": f"host=127.0.0.1 port={member.port}",
            "pg_basebackup ": f"{PG_BASEBACKUP} ",
        }.items():
            text = text.replace(printed, ours)
        return text


@contextlib.contextmanager
def archived() -> Iterator[tuple[Place, Member]]:
    """A server that stores its log, and has a role for base backups."""
    backends.require(backends.INITDB, backends.POSTGRES, PG_BASEBACKUP)
    with backends.private_folder() as folder:
        who = backends.account("postgres")
        for name in ("data", "wal", "backup"):
            who.own(folder / name)
        place = Place(folder)
        with postgres_pair.single(
            folder / "data", lambda member: place.configure(member, *ARCHIVE)
        ) as member:
            member.server.execute(block(*REPLICATOR))
            yield place, member


def test_a_moment_before_a_server_was_made_and_another_one_deleted(tmp_path: Path) -> None:
    with (
        archived() as (place, member),
        distributed_cloud(tmp_path, database=member) as cloud,
    ):
        client = Client(cloud)
        [kept] = made(client, "kept")
        place.run(member, *BACK_UP)
        [gone] = made(client, "gone")
        moment = str(member.value("SELECT now()"))
        [since] = made(client, "since")
        client.compute.delete_server(gone)
        client.compute.wait_for_delete(gone, wait=WAIT_SECONDS)
        stop(cloud)
        member.stop()
        place.run(member, *PUT_BACK)
        place.configure(member, *RECOVERY, moment=moment)
        member.start()
        eventually(lambda: not member.value("SELECT pg_is_in_recovery()"), 60)
        start(cloud)
        eventually(lambda: "put back" in cloud.answer("conductor-1", "readyz"), WAIT_SECONDS)
        assert set(statuses(client.compute)) == {"kept", "gone"}
        planned = restore(cloud)
        assert f"adopt: server {since.id}" in planned
        assert f"lost: server {gone.id}" in planned
        assert "Released" in restore(cloud, "--apply")
        eventually(
            lambda: (
                statuses(client.compute) == {"kept": "ACTIVE", "since": "ACTIVE", "gone": "ERROR"}
            ),
            WAIT_SECONDS,
        )
        assert addresses(client.compute.get_server(since.id)) == addresses(since)
        for one in (kept, gone, since):
            client.compute.delete_server(one.id)
        eventually(lambda: not statuses(client.compute), WAIT_SECONDS)
        assert_nothing_is_left(cloud)


def made(client: Client, *names: str) -> list[Any]:
    """Servers that run."""
    found = [client.create(name) for name in names]
    return [client.compute.wait_for_server(one, wait=WAIT_SECONDS) for one in found]


def stop(cloud: DistributedCloud) -> None:
    """All services."""
    for child in cloud.children.values():
        child.stop()


def start(cloud: DistributedCloud) -> None:
    """All services again."""
    for child in cloud.children.values():
        child.start()
    for name in cloud.children:
        cloud.wait_started(name)


def restore(cloud: DistributedCloud, *words: str) -> str:
    """What `micronova restore` says."""
    environment = cloud.environment("micronova-admin")
    done = programs.run("micronova", ["restore", *words], environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout + done.stderr)

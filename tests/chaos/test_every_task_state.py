"""Conductors are killed with a server in each task_state; another one brings it to its end.

A server is held in a state from outside: a lock on the table that the next stage writes first, or
a stopped scheduler. Then both conductors die by SIGKILL and start again; what held the server is
let go. It must end ACTIVE or ERROR, and a delete must leave nothing.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.functional.cloud import eventually
from tests.functional.distributed import DistributedCloud, distributed_cloud
from tests.functional.test_distributed import Client, assert_nothing_is_left

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

CONDUCTORS = ("conductor-1", "conductor-2")
WAIT_SECONDS = 120
Hold = Callable[[DistributedCloud], contextlib.AbstractContextManager[None]]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributedCloud]:
    """A cloud whose leases are short, so that a takeover needs seconds."""
    with distributed_cloud(tmp_path_factory.mktemp("chaos")) as running:
        for name in CONDUCTORS:
            with (running.folder / f"{name}.conf").open("a") as file:
                file.write("\nlease_seconds = 10\nscan_seconds = 1\n")
            running.restart(name)
        yield running


def locked(table: str) -> Hold:
    """Nobody can read or write the table."""

    @contextlib.contextmanager
    def hold(cloud: DistributedCloud) -> Iterator[None]:
        where = f"host=127.0.0.1 port={cloud.postgres.port} user=postgres dbname=micronova"
        with psycopg.connect(where) as connection:
            connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
            yield
            connection.rollback()

    return hold


def frozen(*names: str) -> Hold:
    """These processes stand still."""

    @contextlib.contextmanager
    def hold(cloud: DistributedCloud) -> Iterator[None]:
        for name in names:
            cloud.kill(name, signal.SIGSTOP)
        try:
            yield
        finally:
            for name in names:
                cloud.kill(name, signal.SIGCONT)

    return hold


@pytest.mark.parametrize(
    ("task_state", "hold"),
    [
        (None, locked("transitions")),
        ("scheduling", frozen("scheduler-1", "scheduler-2")),
        ("networking", locked("ports")),
        ("block_device_mapping", locked("templates")),
        ("spawning", frozen("compute-pve1", "compute-pve2", "compute-pve3")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_conductors_killed(cloud: DistributedCloud, task_state: str | None, hold: Hold) -> None:
    client = Client(cloud)

    def state() -> tuple[str, str | None]:
        found: Any = client.compute.get_server(server)
        return found.vm_state, found.task_state

    with hold(cloud):
        server = client.create(f"held-in-{task_state}").id
        eventually(lambda: state() == ("building", task_state), WAIT_SECONDS)
        for name in CONDUCTORS:
            cloud.kill(name, signal.SIGKILL)
        for name in CONDUCTORS:
            cloud.restart(name)
        assert state() == ("building", task_state)
    eventually(lambda: state()[0] in {"active", "error"}, WAIT_SECONDS)
    client.compute.delete_server(server)
    eventually(lambda: not list(client.compute.servers()), WAIT_SECONDS)
    assert_nothing_is_left(cloud)

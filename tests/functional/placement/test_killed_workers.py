"""Workers of gunicorn that are killed while they claim: all of a claim is there, or nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa

from placement.db import schema
from placement.db.engine import Database
from placement.operation import Services
from tests.functional import backends
from tests.functional.placement.builders import a_body, a_provider, a_uuid
from tests.functional.placement.test_claims import assert_books_balance

pytestmark = pytest.mark.timeout(900)
ROOT = Path(__file__).parents[3]
WANTED = {"VCPU": 1, "MEMORY_MB": 2, "DISK_GB": 3}
CLAIMS, KILLS, CLIENTS = 120, 4, 6
HEADERS = {
    "X-Auth-Token": "admin",
    "X-Roles": "admin,service",
    "OpenStack-API-Version": "placement 1.39",
}


@dataclasses.dataclass(frozen=True)
class Gunicorn:
    """The service under gunicorn: its address, and its master's process ID."""

    address: str
    pid: int

    def workers(self) -> list[int]:
        """Return the process IDs of the workers."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(one) for one in path.read_text().split()]

    def kill(self, pid: int) -> None:
        """Kill a worker."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def claim(self, consumer: str, provider: str) -> int | None:
        """Claim and return the status of the answer, None without one."""
        body = a_body(**{provider: WANTED})
        path = f"{self.address}/allocations/{consumer}"
        try:
            return requests.put(path, json=body, headers=HEADERS, timeout=60).status_code
        except requests.RequestException:
            return None


@pytest.fixture
def gunicorn(database_url: str, tmp_path: Path) -> Iterator[Gunicorn]:
    """Two workers of four threads."""
    settings = tmp_path / "settings.json"
    policy = tmp_path / "policy.yaml"
    policy.write_text("{}")
    settings.write_text(
        json.dumps({"url": database_url, "policy_file": str(policy), "settings": {}})
    )
    port = backends.free_port()
    command = [sys.executable, "-m", "gunicorn", "tests.compat.placement.served:app"]
    command += ["--bind", f"127.0.0.1:{port}", "--workers", "2", "--threads", "4"]
    command += ["--pythonpath", str(ROOT)]
    environment = {**os.environ, "MICRONOVA_TEST_SETTINGS": str(settings)}
    log = tmp_path / "gunicorn.log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, env=environment)
    try:
        backends.wait_until("gunicorn", lambda: backends.listens(port), server, log)
        yield Gunicorn(f"http://127.0.0.1:{port}", server.pid)
    finally:
        server.terminate()
        server.wait(30)


def assert_whole(database: Database) -> set[str]:
    """Every consumer has all that it asked for; return them."""
    a = schema.allocations.c
    rows = database.read(
        lambda c: c.execute(sa.select(a.consumer_uuid, a.resource_class, a.used)).all()
    )
    held: dict[str, dict[str, int]] = {}
    for consumer, name, amount in rows:
        held.setdefault(consumer, {})[name] = amount
    assert all(one == WANTED for one in held.values())
    assert_books_balance(database)
    return set(held)


def until(what: str, check: Callable[[], bool]) -> None:
    """Ask again until the check holds."""
    deadline = time.monotonic() + 240
    pause = threading.Event()
    while not check():
        assert time.monotonic() < deadline, what
        pause.wait(0.02)


def under_way(database: Database) -> bool:
    """Whether a claim waits for a lock, or is still being worked on."""
    query = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state = 'active' AND query LIKE '%wanted AS%' AND pid <> pg_backend_pid()"
    )
    return bool(database.read(lambda c: c.scalar(query)))


@contextlib.contextmanager
def locked(database: Database, provider: str) -> Iterator[None]:
    """Hold what a claim has to lock."""
    with database.writer.begin() as connection:
        connection.execute(
            sa.select(schema.providers.c.id)
            .where(schema.providers.c.uuid == provider)
            .with_for_update()
        )
        yield


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_killed_while_its_one_statement_waits(
    gunicorn: Gunicorn, services: Services, api: Any
) -> None:
    """PostgreSQL finishes or drops the statement; there is no half of it."""
    one = a_provider(api, VCPU=8, MEMORY_MB=16, DISK_GB=24)
    consumer = a_uuid()
    with ThreadPoolExecutor(1) as pool:
        with locked(services.database, one):
            answer = pool.submit(gunicorn.claim, consumer, one)
            until("the claim waits", lambda: under_way(services.database))
            before = gunicorn.workers()
            for worker in before:
                gunicorn.kill(worker)
            assert answer.result(60) is None
        until("the statement ends", lambda: not under_way(services.database))
    assert assert_whole(services.database) <= {consumer}
    until("new workers", lambda: len(set(gunicorn.workers()) - set(before)) == 2)
    assert gunicorn.claim(a_uuid(), one) == 204
    assert_whole(services.database)


def test_killed_again_and_again(gunicorn: Gunicorn, services: Services, api: Any) -> None:
    providers = [
        a_provider(api, VCPU=CLAIMS, MEMORY_MB=2 * CLAIMS, DISK_GB=3 * CLAIMS) for _ in range(2)
    ]
    chance = random.Random(0)
    said: dict[str, int | None] = {}

    def claim(number: int) -> None:
        consumer = a_uuid()
        said[consumer] = gunicorn.claim(consumer, providers[number % 2])

    with ThreadPoolExecutor(CLIENTS) as pool:
        for part in range(KILLS):
            claims = [pool.submit(claim, part + step) for step in range(CLAIMS // KILLS)]
            until("some claims", lambda part=part: len(said) >= part * CLAIMS // KILLS + 9)
            until("workers", lambda: bool(gunicorn.workers()))
            gunicorn.kill(chance.choice(gunicorn.workers()))
            for one in claims:
                one.result(120)
    granted = {consumer for consumer, status in said.items() if status == 204}
    assert len(granted) > CLAIMS // 2
    there = assert_whole(services.database)
    # What was answered is so; what wasn't may be either.
    assert granted <= there <= {one for one, status in said.items() if status in (204, None)}

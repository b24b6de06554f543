"""The database is lost and comes back, workers die, databases are restored."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from placement import ledger
from placement.app import make_app, make_services
from placement.db import migrate, removals, schema, sequence
from placement.db.engine import Database
from placement.operation import Services
from tests.fixtures.auth import header_auth
from tests.functional import backends
from tests.functional.placement.builders import a_body, a_provider, a_uuid, set_inventory, used
from tests.functional.placement.conftest import Api
from tests.functional.placement.test_claims import a_claim, assert_books_balance

pytestmark = [pytest.mark.timeout(900), pytest.mark.sampled(2)]
CANDIDATES = "/allocation_candidates?resources=VCPU:1"


class Stoppable:
    """A PostgreSQL that can be stopped and started, on one port and one folder."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self._who = backends.account("postgres")
        self._data = self._who.own(folder / "data")
        self._log = folder / "log"
        self._stack = contextlib.ExitStack()
        self.port = port or backends.free_port()
        subprocess.run(  # type: ignore[call-overload]
            [str(backends.INITDB), "-D", str(self._data), "-U", "postgres", "-A", "trust"],
            check=True,
            capture_output=True,
            cwd=self._data,
            **self._who.keywords,
        )

    def start(self) -> None:
        command = [str(backends.POSTGRES), "-D", str(self._data), "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        running = backends.running(command, self._who, self._log, stop_signal=signal.SIGINT)
        process = self._stack.enter_context(running)
        answers = backends.Postgres(self.port).answers
        backends.wait_until("PostgreSQL", answers, process, self._log)

    def stop(self) -> None:
        self._stack.close()


@pytest.fixture
def server() -> Iterator[Stoppable]:
    backends.require(backends.INITDB, backends.POSTGRES)
    with backends.private_folder() as folder:
        server = Stoppable(folder)
        server.start()
        yield server
        server.stop()


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """PostgreSQL only where a test wants to stop it, both kinds elsewhere."""
    if "server" in request.fixturenames:
        server: Stoppable = request.getfixturevalue("server")
        return backends.Postgres(server.port).url("postgres")
    found: str = request.getfixturevalue("postgres_url")
    return found


def test_a_database_that_goes_and_comes_back(server: Stoppable, api: Api) -> None:
    one = a_provider(api, VCPU=8)
    assert len(api.simulate_get(CANDIDATES).json["allocation_requests"]) == 1
    server.stop()
    claim = a_body(**{one: {"VCPU": 1}})
    for answer in (
        api.simulate_get(CANDIDATES),
        api.simulate_get(f"/resource_providers/{one}"),
        api.simulate_put(f"/allocations/{a_uuid()}", json=claim),
    ):
        assert answer.status_code == 503
        (error,) = answer.json["errors"]
        assert error["title"] == "Service Unavailable"
        assert "The placement database doesn't answer." in error["detail"]
    assert api.simulate_get("/").status_code == 200
    server.start()
    assert api.simulate_put(f"/allocations/{a_uuid()}", json=claim).status_code == 204
    summaries = api.simulate_get(CANDIDATES).json["provider_summaries"]
    assert summaries[one]["resources"]["VCPU"] == {"capacity": 8, "used": 1}


def test_connections_that_are_lost_while_nobody_uses_them_cost_no_answer(
    server: Stoppable, api: Api
) -> None:
    """As after a fail-over: the server took over, and all connections of before are dead."""
    one = a_provider(api, VCPU=8)
    claim = a_body(**{one: {"VCPU": 1}})
    assert api.simulate_put(f"/allocations/{a_uuid()}", json=claim).status_code == 204
    backends.Postgres(server.port).execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    for _ in range(4):
        assert api.simulate_put(f"/allocations/{a_uuid()}", json=claim).status_code == 204
        assert api.simulate_get(CANDIDATES).status_code == 200
    assert used(api, one) == {"VCPU": 5}


def _claim_and_stop(url: str, provider: str, ready: Any) -> None:
    """Claim step by step and never commit."""
    database = Database(url)

    def work(connection: sa.Connection) -> None:
        ledger.write(connection, [a_claim(a_uuid(), **{provider: {"VCPU": 3}})])
        ready.set()
        threading.Event().wait()

    database.write(work)


def test_a_worker_killed_in_the_middle_of_a_claim(
    services: Services, api: Api, database_url: str
) -> None:
    one = a_provider(api, VCPU=8)
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    worker = spawn.Process(target=_claim_and_stop, args=(database_url, one, ready))
    worker.start()
    assert ready.wait(60)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(30)
    # The server notices the broken connection, rolls back, and the next in line continues.
    claim = a_body(**{one: {"VCPU": 8}})
    assert api.simulate_put(f"/allocations/{a_uuid()}", json=claim).status_code == 204
    assert used(api, one) == {"VCPU": 8}
    assert_books_balance(services.database)
    names = sa.select(sa.func.count()).select_from(schema.consumers)
    assert services.database.read(lambda c: c.scalar(names)) == 1


def test_a_change_that_is_committed_late_is_seen_late_and_not_missed(
    services: Services, api: Api
) -> None:
    """A transaction that began before others and ends after them."""
    one, two = a_provider(api, VCPU=8), a_provider(api, VCPU=8)
    other = Database(str(services.conf.placement_database.connection))
    with other.writer.connect() as connection:
        late = connection.begin()
        ledger.write(connection, [a_claim(a_uuid(), **{one: {"VCPU": 5}})])
        services.ledger.write([a_claim(a_uuid(), **{two: {"VCPU": 6}})])
        summaries = api.simulate_get(CANDIDATES).json["provider_summaries"]
        assert (
            summaries[one]["resources"]["VCPU"]["used"],
            summaries[two]["resources"]["VCPU"]["used"],
        ) == (0, 6)
        late.commit()
    summaries = api.simulate_get(CANDIDATES).json["provider_summaries"]
    assert summaries[one]["resources"]["VCPU"]["used"] == 5
    other.close()


def test_a_restored_database_is_read_again(services: Services, api: Api) -> None:
    """Restoring writes the tables again: rows look old, and are new."""
    one = a_provider(api, VCPU=8)
    assert list(api.simulate_get(CANDIDATES).json["provider_summaries"]) == [one]

    def restore(connection: sa.Connection) -> None:
        connection.execute(sa.update(schema.inventories).values(used=4, changed=0))
        row = connection.execute(sa.select(schema.changes).where(schema.changes.c.id == 2)).one()
        connection.execute(sa.delete(schema.changes).where(schema.changes.c.id == 2))
        connection.execute(sa.insert(schema.changes).values(**row._mapping))

    services.database.write(restore)
    summaries = api.simulate_get(CANDIDATES).json["provider_summaries"]
    assert summaries[one]["resources"]["VCPU"]["used"] == 4


def test_a_snapshot_that_is_too_far_behind_is_made_again(services: Services, api: Api) -> None:
    one, two = a_provider(api), a_provider(api)
    assert len(api.simulate_get(CANDIDATES).json["provider_summaries"]) == 2

    def forget(connection: sa.Connection) -> None:
        removals.remove(connection, two)
        place = connection.scalar(sa.select(schema.removed_providers.c.changed))
        connection.execute(sa.delete(schema.removed_providers))
        sequence.pruned(connection, int(place or 0))

    services.database.write(forget)
    assert list(api.simulate_get(CANDIDATES).json["provider_summaries"]) == [one]


def test_workers_see_each_others_changes_at_once(services: Services, api: Api, conf: Any) -> None:
    other = make_services(conf)
    theirs = Api(make_app(conf, header_auth, other))
    for total in range(8, 12):
        one = a_provider(api, VCPU=total)
        assert one in theirs.simulate_get(CANDIDATES).json["provider_summaries"]
        set_inventory(theirs, one, VCPU=total + 1)
        shown = api.simulate_get(CANDIDATES).json["provider_summaries"][one]
        assert shown["resources"]["VCPU"]["capacity"] == total + 1
        assert theirs.simulate_delete(f"/resource_providers/{one}").status_code == 204
        assert one not in api.simulate_get(CANDIDATES).json["provider_summaries"]
    other.database.close()


def test_an_old_removal_is_forgotten(services: Services, api: Api) -> None:
    some = [a_provider(api) for _ in range(5)]
    kept = a_provider(api)
    assert len(api.simulate_get(CANDIDATES).json["provider_summaries"]) == 6
    for one in some:
        services.database.write(
            functools.partial(removals.remove, uuid=one, kept=2, prune_every=1)
        )
    rows = sa.select(sa.func.count()).select_from(schema.removed_providers)
    assert services.database.read(lambda c: c.scalar(rows)) == 2
    assert list(api.simulate_get(CANDIDATES).json["provider_summaries"]) == [kept]
    migrate.upgrade(str(services.conf.placement_database.connection))

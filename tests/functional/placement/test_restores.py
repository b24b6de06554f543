"""A restored database: what workers remember of it counts no more, and they notice."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from placement.app import make_app, make_services
from placement.operation import Services
from tests.fixtures.auth import header_auth
from tests.functional import backends
from tests.functional.db.conftest import PostgresServer
from tests.functional.placement.builders import a_body, a_provider, a_uuid
from tests.functional.placement.conftest import Api
from tests.functional.placement.test_faults import Stoppable

pytestmark = pytest.mark.timeout(900)
CANDIDATES = "/allocation_candidates?resources=VCPU:1"
PG_DUMP = backends.program("pg_dump", "/usr/lib/postgresql/*/bin/pg_dump")
PG_RESTORE = backends.program("pg_restore", "/usr/lib/postgresql/*/bin/pg_restore")
#: so many transactions that a new server has a long way to go
MANY = "DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
only_postgresql = pytest.mark.parametrize("url", ["postgres"], indirect=True)
only_sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


def at(url: str) -> str:
    """Return a URL as PostgreSQL's programs take it."""
    return url.replace("postgresql+psycopg:", "postgresql:")


def dump(url: str, file: Path) -> None:
    backends.require(PG_DUMP, PG_RESTORE)
    subprocess.run([str(PG_DUMP), "-Fc", "-f", str(file), at(url)], check=True)


def restore(url: str, file: Path) -> None:
    subprocess.run([str(PG_RESTORE), "--exit-on-error", "-d", at(url), str(file)], check=True)


def claim(api: Any, provider: str, amount: int) -> None:
    body = a_body(**{provider: {"VCPU": amount}})
    assert api.simulate_put(f"/allocations/{a_uuid()}", json=body).status_code == 204


def reported_usage(api: Any) -> dict[str, int]:
    """Return how much of each provider's VCPUs is used, as candidates report it."""
    summaries = api.simulate_get(CANDIDATES).json["provider_summaries"]
    return {uuid: one["resources"]["VCPU"]["used"] for uuid, one in summaries.items()}


@only_postgresql
def test_a_dump_restored_under_running_workers(
    services: Services, api: Api, url: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    one = a_provider(api, VCPU=9)
    claim(api, one, 3)
    dump(url, tmp_path / "dump")
    claim(api, one, 5)
    two = a_provider(api)
    assert reported_usage(api) == {one: 8, two: 0}
    name = sa.make_url(url).database
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    postgres_server.execute(f"CREATE DATABASE {name}")
    restore(url, tmp_path / "dump")
    assert reported_usage(api) == {one: 3}
    claim(api, one, 1)
    assert reported_usage(api) == {one: 4}


@pytest.fixture
def port() -> int:
    """The port of one server, and then of another."""
    return backends.free_port()


@pytest.fixture
def old_server(port: int) -> Iterator[Stoppable]:
    """A PostgreSQL that has seen many transactions."""
    with backends.private_folder() as folder:
        server = Stoppable(folder, port)
        server.start()
        backends.Postgres(port).execute(MANY)
        yield server
        server.stop()


class TestAYoungerServer:
    """Its transactions have smaller numbers than those that the restored rows name."""

    @pytest.fixture
    def url(self, old_server: Stoppable) -> str:
        """A database of the old server."""
        return backends.Postgres(old_server.port).url("postgres")

    def test_changes_are_distinguished(
        self,
        old_server: Stoppable,
        services: Services,
        api: Api,
        url: str,
        count: Callable[[Callable[[], Any]], list[str]],
        tmp_path: Path,
    ) -> None:
        one = a_provider(api, VCPU=9)
        claim(api, one, 3)
        dump(url, tmp_path / "dump")
        claim(api, one, 5)
        assert reported_usage(api) == {one: 8}
        old_server.stop()
        with backends.private_folder() as folder:
            young = Stoppable(folder, old_server.port)
            young.start()
            try:
                restore(url, tmp_path / "dump")
                assert reported_usage(api) == {one: 3}
                for used in (4, 5):
                    claim(api, one, 1)
                    # What was restored isn't read again with every change.
                    assert len(count(services.follower.current)) <= 3
                    assert reported_usage(api) == {one: used}
            finally:
                services.database.close()
                young.stop()


def _file_of(url: str) -> Path:
    return Path(str(sa.make_url(url).database))


@only_sqlite
def test_a_file_restored_under_running_workers(
    services: Services, api: Api, url: str, tmp_path: Path
) -> None:
    """As sqlite3's .restore does it."""
    one = a_provider(api, VCPU=9)
    claim(api, one, 3)
    live, kept = _file_of(url), tmp_path / "kept.db"
    with closing(sqlite3.connect(live)) as source, closing(sqlite3.connect(kept)) as target:
        source.backup(target)
    claim(api, one, 5)
    assert reported_usage(api) == {one: 8}
    with closing(sqlite3.connect(kept)) as source, closing(sqlite3.connect(live)) as target:
        source.backup(target)
    assert reported_usage(api) == {one: 3}
    claim(api, one, 1)
    assert reported_usage(api) == {one: 4}


@only_sqlite
def test_a_file_copied_back_while_the_service_is_stopped(
    services: Services, api: Api, conf: Any, url: str, tmp_path: Path
) -> None:
    one = a_provider(api, VCPU=9)
    claim(api, one, 3)
    assert reported_usage(api) == {one: 3}
    services.database.close()
    live, kept = _file_of(url), tmp_path / "kept.db"
    shutil.copy(live, kept)
    claim(api, one, 5)
    services.database.close()
    shutil.copy(kept, live)
    again = make_services(conf)
    restarted = Api(make_app(conf, header_auth, again))
    assert reported_usage(restarted) == {one: 3}
    again.database.close()

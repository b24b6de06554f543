"""The compute API in process, with a conductor that writes rows; on SQLite, or on PostgreSQL
where MICRONOVA_TEST_DATABASE says `postgresql`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.compute import STANDARD, ComputeApi
from tests.fixtures.listings import Row
from tests.functional import backends

MakeApi = Callable[..., ComputeApi]


@pytest.fixture(scope="session")
def postgres() -> Iterator[backends.Postgres | None]:
    """The PostgreSQL of this run, if it is on one."""
    if os.environ.get("MICRONOVA_TEST_DATABASE") != "postgresql":
        yield None
        return
    with backends.postgres() as server:
        yield server


@pytest.fixture
def url(postgres: backends.Postgres | None, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if postgres is None:
        yield f"sqlite:///{tmp_path / 'cloud.sqlite'}"
        return
    name = f"test_{uuid.uuid4().hex}"
    postgres.execute(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def make(url: str) -> Iterator[MakeApi]:
    """Make an API over an image, a flavor, a key pair, a host, and these rows."""
    made: list[ComputeApi] = []

    def an_api(*rows: Row, **options: Any) -> ComputeApi:
        api = ComputeApi(url, **options).add(*STANDARD, *rows)
        made.append(api)
        return api

    yield an_api
    for api in made:
        api.close()


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    """An API with nothing but the standard rows."""
    return make()

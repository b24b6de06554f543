"""The roles of the compose file's PostgreSQL: made in an empty one, and in one of 1.0.0."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from db import migrate, roles
from tests.functional import backends
from tests.functional.backends import Postgres
from tests.unit.test_composed import READ

_VARIABLE = re.compile(r"\$\{(\w+)[^}]*\}")
#: roles.sql of 1.0.0, which ran in an empty PostgreSQL only
OLD = """
CREATE ROLE micronova LOGIN PASSWORD 'MICRONOVA_DATABASE_PASSWORD';
CREATE ROLE micronova_api LOGIN PASSWORD 'MICRONOVA_API_PASSWORD';
CREATE ROLE placement LOGIN PASSWORD 'MICRONOVA_PLACEMENT_PASSWORD';
CREATE DATABASE micronova OWNER micronova;
CREATE DATABASE placement OWNER placement;
"""


@pytest.fixture(params=["", OLD], ids=["empty", "of 1.0.0"])
def server(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with backends.postgres() as made:
        made.execute(*filter(None, map(str.strip, request.param.split(";"))))
        yield made


def test_services_change_rows_and_no_tables(server: Postgres, tmp_path: Path) -> None:
    text = _VARIABLE.sub(r"\1", READ["configs"]["roles.sql"]["content"])
    (tmp_path / "roles.sql").write_text(text)
    options = [one for one in READ["services"]["roles"]["entrypoint"] if "--host" not in one]
    where = ["--host=127.0.0.1", f"--port={server.port}", f"--file={tmp_path}/roles.sql"]
    for _ in range(2):
        subprocess.run([*options, *where], check=True, capture_output=True)
    words = READ["services"]["tables"]["command"]
    given = dict(itertools.pairwise(words))
    owner = server.url("micronova", "micronova")
    migrate.upgrade(owner)
    roles.grant_reader(owner, given["--reader-role"])
    roles.grant_writer(owner, given["--writer-role"])
    conductors = server.url("micronova", given["--writer-role"]).replace("+psycopg", "")
    assert given["--writer-role"] in READ["configs"]["conductor.conf"]["content"]
    with psycopg.connect(conductors) as connection:
        connection.execute("DELETE FROM servers")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DROP TABLE servers")

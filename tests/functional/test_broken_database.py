"""What the image and network APIs answer when their database fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa

from api.image.app import make_app as image_app
from api.network.app import make_app as network_app
from db import migrate
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, served

APIS = pytest.mark.parametrize(
    ("make", "path"), [(image_app, "/v2/images"), (network_app, "/v2.0/networks")]
)


class Broken:
    """An engine with a fault that nobody foresaw."""

    def connect(self) -> Any:
        """Fail."""
        raise RuntimeError("sqlite fell over")


def ask(make: Callable[..., Any], path: str, engine: Any) -> requests.Response:
    with served(make(a_conf(), engine, auth.header_auth)) as root:
        headers = {"X-Auth-Token": auth.MEMBER}
        return requests.get(f"{root}{path}", headers=headers, timeout=60)


@APIS
def test_an_unforeseen_fault_shows_the_request_id_only(
    make: Callable[..., Any], path: str
) -> None:
    answer = ask(make, path, Broken())
    assert answer.status_code == 500
    assert answer.headers["x-openstack-request-id"] in answer.text
    assert "sqlite" not in answer.text.lower()


@APIS
def test_a_broken_database_is_not_available(
    make: Callable[..., Any], path: str, tmp_path: Path
) -> None:
    broken = sa.create_engine(f"sqlite:///{tmp_path / 'empty.sqlite'}")
    answer = ask(make, path, broken)
    broken.dispose()
    assert answer.status_code == 503
    assert "The database is not available." in answer.text


@APIS
def test_a_wrong_statement_is_an_internal_error_and_logged(
    make: Callable[..., Any], path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Here it is the schema that is another one than the statement says."""
    url = f"sqlite:///{tmp_path / 'cloud.sqlite'}"
    migrate.upgrade(url)
    engine = sa.create_engine(url)
    table = path.rpartition("/")[2]
    with engine.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME COLUMN name TO title")
    answer = ask(make, path, engine)
    engine.dispose()
    assert answer.status_code == 500
    assert answer.headers["x-openstack-request-id"] in answer.text
    [logged] = [one for one in caplog.records if one.exc_info]
    assert "no such column" in str(logged.exc_info[1] if logged.exc_info else "")

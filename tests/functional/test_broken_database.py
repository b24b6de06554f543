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
def test_an_unforeseen_fault_tells_the_request_id_only(
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

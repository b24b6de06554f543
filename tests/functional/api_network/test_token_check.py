"""Without a filter of a test's own, the ordinary token check stands in front of both APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
import sqlalchemy as sa
from oslo_config import cfg

from api.image.app import make_app as make_image_app
from api.network.app import make_app as make_network_app
from common.clients import credentials
from tests.fixtures.listings import served
from web import auth

URI = "http://keystone.example/v3"


@pytest.mark.parametrize(
    ("make_app", "open_path", "closed_path"),
    [
        (make_image_app, "/versions", "/v2/images"),
        (make_network_app, "/", "/v2.0/networks"),
    ],
)
def test_the_ordinary_token_check(
    database: sa.Engine, make_app: Callable[..., Any], open_path: str, closed_path: str
) -> None:
    conf = cfg.ConfigOpts()
    auth.register(conf)
    conf([], project="micronova", default_config_files=[])
    login = {"auth_type": "password", "auth_url": URI, "username": "micronova"}
    credentials.set_defaults(conf, auth.GROUP, login | {"www_authenticate_uri": URI})
    with served(make_app(conf, database)) as url:
        assert requests.get(f"{url}{open_path}", timeout=60).status_code == 200
        answer = requests.get(f"{url}{closed_path}", timeout=60)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == f'Keystone uri="{URI}"'
    assert answer.headers["x-openstack-request-id"].startswith("req-")

"""The service behind a real Keystone: tokens are checked by keystonemiddleware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from falcon import testing
from oslo_config import cfg

from placement import config
from placement.app import make_app, make_services
from tests.functional.keystone_fixture import RunningKeystone, running_keystone
from tests.functional.placement.builders import a_uuid
from tests.functional.placement.conftest import typed
from web import auth

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.parametrize("url", ["sqlite"], indirect=True),
]
PROVIDERS = "/resource_providers"


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKeystone]:
    """A running Keystone."""
    with running_keystone(tmp_path_factory.mktemp("keystone")) as running:
        yield running


@pytest.fixture
def ask(keystone: RunningKeystone, database_url: str) -> Iterator[Any]:
    """Make a request with a token and return the answer."""
    conf = cfg.ConfigOpts()
    config.register(conf)
    auth.register(conf)
    conf([], project="test", default_config_files=[])
    conf.set_override("connection", database_url, config.DATABASE_GROUP)
    keystone.configure(conf)
    services = make_services(conf)
    client = testing.TestClient(typed(make_app(conf, services=services)))

    def asked(token: str | None, path: str, method: str = "GET", body: Any = None) -> Any:
        headers = {"OpenStack-API-Version": "placement 1.39"}
        if token is not None:
            headers["X-Auth-Token"] = token
        return client.simulate_request(method, path, headers=headers, json=body)

    yield asked
    services.database.close()


def test_who_may_what(keystone: RunningKeystone, ask: Any) -> None:
    assert ask(None, "/").status_code == 200
    for nobody in (None, "wrong", "gAAAA" + "x" * 180):
        refused = ask(nobody, PROVIDERS)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == f'Keystone uri="{keystone.auth_url}"'
    assert ask(keystone.token(), PROVIDERS).status_code == 403
    admin = keystone.token("admin", "admin")
    made = ask(admin, PROVIDERS, "POST", {"name": "node", "uuid": a_uuid()})
    assert made.status_code == 200
    assert len(ask(admin, PROVIDERS).json["resource_providers"]) == 1
    nothing = {"inventories": {}, "allocations": {}}
    assert ask(admin, "/reshaper", "POST", nothing).status_code == 403
    service = keystone.token("micronova", "service")
    assert ask(service, "/reshaper", "POST", nothing).status_code in (204, 400)
    project = "/usages?project_id="
    assert ask(keystone.token(), f"{project}{a_uuid()}").status_code == 403

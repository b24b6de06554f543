"""Rate limits of every API: who is limited, and what is answered."""

from __future__ import annotations

from typing import Any

import falcon
import falcon.testing
import pytest
from oslo_config import cfg

from api.clustering.errors import FAULTS as CLUSTERING
from api.compute.errors import FAULTS as COMPUTE
from api.image.errors import FAULTS as IMAGE
from api.network.errors import FAULTS as NETWORK
from api.volume.errors import FAULTS as VOLUME
from placement.faults import FAULTS as PLACEMENT
from tests.fixtures import auth
from web import proxies, rate_limits
from web.assembly import Application, assemble

FORMS = {
    "compute": COMPUTE,
    "image": IMAGE,
    "network": NETWORK,
    "block-storage": VOLUME,
    "clustering": CLUSTERING,
    "placement": PLACEMENT,
}
BURST = 3
RATE = f"0.001/{BURST}"
HOSTILE = {
    "X-Forwarded-For": "192.0.2.1",
    "X-User-Id": "somebody",
    "X-Project-Id": "somewhere",
    "X-Roles": "admin,service",
    "X-Identity-Status": "Confirmed",
    "Forwarded": "for=192.0.2.1",
    "X-Service-Token": "nonsense",
}


class Resource:
    """What is asked for."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.media = {}


def client(kind: str = "compute", **limits: dict[str, str]) -> falcon.testing.TestClient:
    """An API with these limits."""
    conf = cfg.ConfigOpts()
    for register in (proxies.register, rate_limits.register):
        register(conf)
    conf([], default_config_files=[])
    for name, value in limits.items():
        conf.set_override(name, value, group=rate_limits.GROUP)
    api = Application(kind, {"/things": Resource()}, FORMS[kind], lambda path: path == "/")
    return falcon.testing.TestClient(assemble(api, conf, auth.header_auth))


def statuses(made: falcon.testing.TestClient, token: str, count: int = BURST + 1) -> list[int]:
    """What so many requests are answered."""
    headers = {"X-Auth-Token": token}
    return [made.simulate_get("/things", headers=headers).status_code for _ in range(count)]


OVER = [200] * BURST + [429]


@pytest.mark.parametrize("kind", FORMS)
def test_who_asks_too_often_is_refused_as_the_real_service_would(kind: str) -> None:
    made = client(kind, user={"all": RATE})
    assert statuses(made, auth.MEMBER) == OVER
    answer = made.simulate_get("/things", headers={"X-Auth-Token": auth.MEMBER})
    seconds = int(answer.headers["retry-after"])
    assert 900 <= seconds <= 1000
    assert f"may be sent in {seconds} s" in answer.text
    if kind in ("compute", "block-storage"):
        assert answer.json["overLimit"]["code"] == 429
    if kind == "block-storage":
        assert answer.json["overLimit"]["retryAfter"] == str(seconds)
    if kind == "clustering":
        assert answer.json["error"]["code"] == 429
    if kind == "network":
        assert answer.json["NeutronError"]["type"] == "HTTPTooManyRequests"
    if kind == "placement":
        assert answer.json["errors"][0]["status"] == 429


def test_nothing_is_limited_by_default() -> None:
    assert statuses(client(), auth.MEMBER, 200) == [200] * 200


def test_users_and_projects_have_limits_of_their_own() -> None:
    made = client(user={"compute": RATE}, project={"all": f"0.001/{BURST + 2}"})
    assert statuses(made, auth.token("a", "p", "member")) == OVER
    assert statuses(made, auth.token("b", "p", "member")) == [200, 200, 429, 429]
    assert statuses(made, auth.token("b", "q", "member")) == [200, 429, 429, 429]
    assert statuses(made, auth.token("c", "q", "member")) == OVER


def test_an_api_that_is_named_has_its_own_rate() -> None:
    limits = {"user": {"all": "1/1", "compute": RATE}}
    assert statuses(client("compute", **limits), auth.MEMBER) == OVER
    assert statuses(client("image", **limits), auth.MEMBER)[1] == 429
    assert statuses(client("image", user={"compute": RATE}), auth.MEMBER) == [200] * 4


def test_administrators_have_another_limit() -> None:
    made = client(project={"all": RATE}, administrator={"all": "0.001/6"})
    admin = auth.token("root", "demo", "admin")
    assert statuses(made, admin, 8) == [200] * 6 + [429] * 2
    assert statuses(made, auth.MEMBER) == OVER


def test_services_have_none() -> None:
    rates = {"all": RATE}
    made = client(project=rates, user=rates, administrator=rates)
    service = auth.token("micronova", "service", "admin", "service")
    assert statuses(made, service, 20) == [200] * 20


@pytest.mark.parametrize("name", HOSTILE)
def test_headers_change_nothing(name: str) -> None:
    made = client(user={"all": RATE})
    codes = [
        made.simulate_get(
            "/things",
            headers={"X-Auth-Token": auth.MEMBER, name: f"{HOSTILE[name]}{number or ''}"},
        ).status_code
        for number in range(BURST + 1)
    ]
    assert codes == OVER


def test_versions_are_not_limited() -> None:
    made = client(user={"all": RATE})
    assert {made.simulate_get("/").status_code for _ in range(10)} == {404}


@pytest.mark.parametrize("text", ["compute", "compute:10", "compute:0/5", "all:x/y"])
def test_a_wrong_rate_is_refused_at_the_start(text: str, tmp_path: Any) -> None:
    from common.config import load
    from common.errors import ConfigurationError

    file = tmp_path / "micronova.conf"
    file.write_text(f"[rate_limits]\nuser = {text}\n")
    with pytest.raises(ConfigurationError):
        load([rate_limits.register], files=[str(file)])

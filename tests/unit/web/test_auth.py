from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

import pytest
from oslo_config import cfg

from common import clock
from common.clients import credentials
from common.context import RequestContext
from tests.fixtures import auth as stand_in
from web import auth

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

CREDENTIALS = {
    "auth_type": "password",
    "auth_url": "http://keystone.test/v3",
    "username": "micronova",
    "password": "hidden",
    "project_name": "service",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}


def a_conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    auth.register(conf)
    conf([], project="micronova", default_config_files=[])
    return conf


def show(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(auth.context_from_environ(environ)).encode()]


def ask(app: WSGIApplication, path: str = "/servers", **variables: str) -> tuple[str, Any]:
    environ: dict[str, Any] = {"PATH_INFO": path, **variables}
    setup_testing_defaults(environ)
    statuses: list[str] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        statuses.append(status)

    body = b"".join(app(environ, start_response))
    return statuses[0], json.loads(body)


def test_context_of_a_member() -> None:
    _, seen = ask(
        stand_in.header_auth(show),
        HTTP_X_AUTH_TOKEN=stand_in.token("ann", "lab", "member", "reader"),
    )
    context = RequestContext(**seen, overwrite=False)
    assert (context.user_id, context.project_id) == ("ann", "lab")
    assert context.roles == ["member", "reader"]
    assert context.system_scope is None
    assert context.project_domain_id == "default"
    assert context.request_id.startswith("req-")


def test_context_of_a_system_scoped_token() -> None:
    _, seen = ask(stand_in.header_auth(show), HTTP_X_AUTH_TOKEN=stand_in.SYSTEM)
    assert seen["system_scope"] == "all"
    assert "project_id" not in seen


def test_context_with_a_service_token() -> None:
    _, seen = ask(
        stand_in.header_auth(show),
        HTTP_X_AUTH_TOKEN=stand_in.MEMBER,
        HTTP_X_SERVICE_TOKEN=stand_in.SERVICE,
    )
    assert seen["user_id"] == "demo"
    assert seen["service_user_id"] == "micronova"
    assert "service" in seen["service_roles"]


def test_a_service_token_without_the_role_gives_nothing() -> None:
    _, seen = ask(
        stand_in.header_auth(show),
        HTTP_X_AUTH_TOKEN=stand_in.MEMBER,
        HTTP_X_SERVICE_TOKEN=stand_in.MEMBER,
    )
    assert seen["service_roles"] == []
    assert "service_user_id" not in seen


def test_without_a_confirmed_token_only_the_request_counts() -> None:
    values = auth.context_from_environ(
        {
            "openstack.request_id": "req-1",
            "openstack.global_request_id": "req-2",
            "REMOTE_ADDR": "192.0.2.7",
            "HTTP_X_IDENTITY_STATUS": "Invalid",
            "HTTP_X_ROLES": "admin",
            "HTTP_OPENSTACK_SYSTEM_SCOPE": "all",
        }
    )
    assert values == {
        "request_id": "req-1",
        "global_request_id": "req-2",
        "remote_address": "192.0.2.7",
        "roles": [],
        "service_roles": [],
        "is_admin_project": False,
    }


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"REMOTE_ADDR": "192.0.2.7"}, "192.0.2.7"),
        # a proxy that is trusted: web.proxies has removed all others'
        ({"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "2001:db8::7"}, "2001:db8::7"),
        ({"REMOTE_ADDR": ""}, None),
        ({}, None),
    ],
)
def test_from_where_a_request_came(environ: dict[str, str], wanted: str | None) -> None:
    assert auth.context_from_environ(environ).get("remote_address") == wanted


@pytest.mark.parametrize("name", sorted(auth.IDENTITY_VARIABLES - {"HTTP_X_SERVICE_CATALOG"}))
def test_no_client_header_reaches_an_application(name: str) -> None:
    def application(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        start_response("200 OK", [])
        return [json.dumps(environ.get(name)).encode()]

    conf = a_conf()
    credentials.set_defaults(conf, auth.GROUP, CREDENTIALS)
    everywhere = auth.protect(application, conf, anonymous=lambda path: True)
    assert ask(everywhere, **{name: "forged"}) == ("200 OK", None)
    delayed = auth.protect(application, conf, delay_auth_decision=True)
    assert ask(delayed, **{name: "forged"})[1] in (None, "Invalid")


def test_protect_and_its_stand_in_refuse_alike() -> None:
    conf = a_conf()
    values = CREDENTIALS | {"www_authenticate_uri": "http://keystone.test/v3"}
    credentials.set_defaults(conf, auth.GROUP, values)
    doors = (auth.protect(show, conf), stand_in.header_auth(show))
    answers = [ask(door) for door in doors]
    assert answers[0] == answers[1]
    assert answers[0][0] == "401 Unauthorized"


def test_register_bounds_the_wait_for_keystone() -> None:
    conf = a_conf()
    credentials.set_defaults(conf, auth.GROUP, CREDENTIALS)
    auth.protect(show, conf)
    assert conf[auth.GROUP].http_connect_timeout == 15


class Checks:
    """Token checks that asked the cache or Keystone."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        now: Callable[[], float] = time.monotonic,
        **conf_values: Any,
    ) -> None:
        from keystonemiddleware import auth_token

        self.asked: list[str] = []
        self.changes: dict[str, dict[str, Any]] = {}
        """token → what differs in it."""
        conf = a_conf()
        credentials.set_defaults(conf, auth.GROUP, CREDENTIALS)
        for name, value in conf_values.items():
            conf.set_override(name, value, group=auth.GROUP)
        monkeypatch.setattr(
            auth_token.AuthProtocol, "fetch_token", lambda _, token, **__: self._fetch(token)
        )
        self.app = auth.protect(show, conf, service_type="compute", now=now)

    def _fetch(self, token: str) -> dict[str, Any]:
        self.asked.append(token)
        ends = clock.utcnow() + datetime.timedelta(hours=1)
        found = {
            "user": {"id": token, "name": token, "domain": {"id": "default", "name": "Default"}},
            "project": {"id": "lab", "name": "lab", "domain": {"id": "default", "name": "D"}},
            "roles": [{"id": "r", "name": "service" if token == "service" else "member"}],
            "catalog": [{"type": "compute", "name": "nova", "id": "c", "endpoints": []}],
            "methods": ["password"],
            "issued_at": ends.isoformat(),
            "expires_at": ends.isoformat(),
        }
        return {"token": found | self.changes.get(token, {})}

    def ask(self, token: str, **variables: str) -> Any:
        return ask(self.app, HTTP_X_AUTH_TOKEN=token, **variables)[1]


def test_a_token_is_looked_up_once_in_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks(monkeypatch)
    first = checks.ask("ann")
    assert first["user_id"] == "ann"
    assert [checks.ask("ann") for _ in range(3)] == [first] * 3
    assert checks.ask("ben")["user_id"] == "ben"
    assert checks.asked == ["ann", "ben"]
    # What a client says of itself counts no more than the first time.
    assert checks.ask("ann", HTTP_X_ROLES="admin", HTTP_X_USER_ID="root") == first
    served = checks.ask("ann", HTTP_X_SERVICE_TOKEN="service")
    assert (served["user_id"], served["service_user_id"]) == ("ann", "service")
    assert "service_user_id" not in checks.ask("ann")
    # The token of a service may end sooner than the user's.
    before = len(checks.asked)
    assert checks.ask("ann", HTTP_X_SERVICE_TOKEN="service") == served
    assert sorted(checks.asked[before:]) == ["ann", "service"]


def test_a_token_is_looked_up_again_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    checks = Checks(monkeypatch, lambda: now[0])
    for moment in (100.0, 104.9, 105.0, 105.1):
        now[0] = moment
        checks.ask("ann")
    assert checks.asked == ["ann"] * 2


@pytest.mark.parametrize(
    "changes",
    [
        {"expires_at": "soon"},
        {
            "application_credential": {
                "id": "a",
                "name": "a",
                "restricted": True,
                "access_rules": [
                    {"id": "1", "service": "compute", "method": "GET", "path": "/servers"}
                ],
            }
        },
    ],
    ids=["ends", "rules"],
)
def test_what_may_not_hold_next_time_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    checks = Checks(monkeypatch)
    if "expires_at" in changes:
        ends = clock.utcnow() + datetime.timedelta(seconds=4)
        changes = {"expires_at": ends.isoformat()}
    checks.changes["ann"] = changes
    assert [ask(checks.app, HTTP_X_AUTH_TOKEN="ann")[0] for _ in range(2)] == ["200 OK"] * 2
    assert checks.asked == ["ann"] * 2
    if "application_credential" in changes:
        assert ask(checks.app, "/flavors", HTTP_X_AUTH_TOKEN="ann")[0] == "401 Unauthorized"


def test_nothing_is_kept_where_no_token_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks(monkeypatch, token_cache_time=-1)
    assert [checks.ask("ann")["user_id"] for _ in range(2)] == ["ann", "ann"]
    assert checks.asked == ["ann"] * 2

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

import pytest
from oslo_config import cfg

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
            "HTTP_X_IDENTITY_STATUS": "Invalid",
            "HTTP_X_ROLES": "admin",
            "HTTP_OPENSTACK_SYSTEM_SCOPE": "all",
        }
    )
    assert values == {
        "request_id": "req-1",
        "global_request_id": "req-2",
        "roles": [],
        "service_roles": [],
        "is_admin_project": False,
    }


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

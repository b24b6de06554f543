"""What browsers of other origins may send and see, where the operator lets them in."""

from __future__ import annotations

from typing import Any

from falcon import testing
from oslo_config import cfg

from placement.app import make_app
from placement.operation import Services
from tests.fixtures.auth import ADMIN, header_auth

ORIGIN = "https://dashboard.example"


def names(header: str) -> set[str]:
    return {name.strip().lower() for name in header.split(",")}


def ask(app: Any, method: str, path: str, **headers: str) -> tuple[str, dict[str, str]]:
    """(status, headers) without wsgiref's validator: a preflight's answer has no type."""
    answered: list[Any] = []
    environ = testing.create_environ(path, method=method, headers=headers)
    b"".join(app(environ, lambda *answer: answered.extend(answer)))
    return answered[0][:3], {name.lower(): value for name, value in answered[1]}


def test_the_headers_of_the_api_are_allowed_by_default(
    conf: cfg.ConfigOpts, services: Services
) -> None:
    conf.set_override("allowed_origin", [ORIGIN], "cors")
    app = make_app(conf, header_auth, services)
    asked = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "X-Auth-Token, OpenStack-API-Version",
    }
    status, before = ask(app, "OPTIONS", "/resource_providers", **asked)
    assert status == "200"
    assert before["access-control-allow-origin"] == ORIGIN
    assert before["access-control-allow-methods"] == "PUT"
    allowed = names(before["access-control-allow-headers"])
    assert allowed == {"x-auth-token", "openstack-api-version"}
    for refused in (
        {"Access-Control-Request-Method": "TRACE"},
        {"Access-Control-Request-Headers": "X-Something-Else"},
    ):
        _, answered = ask(app, "OPTIONS", "/resource_providers", **{**asked, **refused})
        assert "access-control-allow-methods" not in answered
    identity = {"Origin": ORIGIN, "X-Auth-Token": ADMIN}
    status, answer = ask(app, "GET", "/resource_providers", **identity)
    assert status == "200"
    assert names(answer["access-control-expose-headers"]) == {
        "x-auth-token",
        "x-openstack-request-id",
        "x-subject-token",
        "x-service-token",
        "openstack-api-version",
    }


def test_nobody_else_is_let_in(conf: cfg.ConfigOpts, services: Services) -> None:
    _, answered = ask(make_app(conf, header_auth, services), "GET", "/", Origin=ORIGIN)
    assert "access-control-allow-origin" not in answered

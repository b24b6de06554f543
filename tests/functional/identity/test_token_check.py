"""Tokens of the real Keystone through the token check of the services."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

import pytest
from oslo_config import cfg

from common.clients import credentials
from common.context import RequestContext
from tests.functional.keystone_fixture import RunningKeystone, access_of
from web import auth

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

CLIENT_GROUP = "service_auth"


@pytest.fixture
def conf(keystone: RunningKeystone) -> cfg.ConfigOpts:
    conf = _empty_conf()
    keystone.configure(conf, CLIENT_GROUP)
    return conf


def _empty_conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    auth.register(conf)
    credentials.register(conf, CLIENT_GROUP)
    conf([], project="micronova", default_config_files=[])
    return conf


def show_context(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with the context's values, but for the token."""
    assert None not in environ.values()
    values = auth.context_from_environ(environ)
    context = RequestContext(**values, overwrite=False)
    assert context.user_id == values.get("user_id")
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({**values, "auth_token": None}).encode()]


def ask(
    app: WSGIApplication, token: str | None, path: str = "/servers", **more: str
) -> tuple[int, dict[str, str], Any]:
    environ: dict[str, Any] = {"PATH_INFO": path, **more}
    setup_testing_defaults(environ)
    if token is not None:
        environ["HTTP_X_AUTH_TOKEN"] = token
    answer: dict[str, Any] = {}

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        answer.update(status=int(status[:3]), headers=dict(headers))

    body = b"".join(app(environ, start_response))
    text = json.loads(body) if body[:1] == b"{" else body.decode()
    return answer["status"], answer["headers"], text


def test_a_member(keystone: RunningKeystone, conf: cfg.ConfigOpts) -> None:
    app = auth.protect(show_context, conf)
    status, _, seen = ask(app, keystone.token(), HTTP_OPENSTACK_SYSTEM_SCOPE="all")
    assert status == 200
    assert (seen["user_name"], seen["project_name"]) == ("demo", "demo")
    assert set(seen["roles"]) == {"member", "reader"}
    assert seen["user_domain_id"] == seen["project_domain_id"] == "default"
    assert "system_scope" not in seen


def test_a_system_scoped_token(keystone: RunningKeystone, conf: cfg.ConfigOpts) -> None:
    token = keystone.system_session().get_token()
    status, _, seen = ask(auth.protect(show_context, conf), token)
    assert (status, seen["system_scope"]) == (200, "all")
    assert "project_id" not in seen


def test_a_service_token_leaves_the_users_scope(
    keystone: RunningKeystone, conf: cfg.ConfigOpts
) -> None:
    app = auth.protect(show_context, conf)
    service = keystone.token("micronova", "service")
    status, _, seen = ask(app, keystone.system_session().get_token(), HTTP_X_SERVICE_TOKEN=service)
    assert (status, seen["system_scope"]) == (200, "all")
    assert seen["service_user_name"] == "micronova"
    assert "service" in seen["service_roles"]


def test_a_user_is_no_service(keystone: RunningKeystone, conf: cfg.ConfigOpts) -> None:
    token = keystone.token()
    status, _, _ = ask(auth.protect(show_context, conf), token, HTTP_X_SERVICE_TOKEN=token)
    assert status == 401


@pytest.mark.parametrize("token", [None, "", "wrong", "gAAAA" + "x" * 180])
def test_without_a_valid_token(
    keystone: RunningKeystone, conf: cfg.ConfigOpts, token: str | None
) -> None:
    status, headers, body = ask(auth.protect(show_context, conf), token)
    assert status == 401
    assert headers["WWW-Authenticate"] == f'Keystone uri="{keystone.auth_url}"'
    assert body == {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }


def test_a_revoked_token_is_refused_by_a_check_that_never_saw_it(
    keystone: RunningKeystone, conf: cfg.ConfigOpts
) -> None:
    session = keystone.session()
    token = str(session.get_token())
    session.delete(f"{keystone.auth_url}/auth/tokens", headers={"X-Subject-Token": token})
    assert ask(auth.protect(show_context, conf), token)[0] == 401


def test_anonymous_paths_need_no_token(conf: cfg.ConfigOpts) -> None:
    app = auth.protect(show_context, conf, anonymous=lambda path: path == "/")
    forged = {"HTTP_X_IDENTITY_STATUS": "Confirmed", "HTTP_X_USER_ID": "forged"}
    status, _, seen = ask(app, "wrong", "/", HTTP_X_ROLES="admin", **forged)
    assert status == 200
    assert (seen["roles"], seen.get("user_id")) == ([], None)
    assert ask(app, "wrong", "/servers")[0] == 401


def test_delayed_decision_passes_no_identity(conf: cfg.ConfigOpts) -> None:
    app = auth.protect(show_context, conf, delay_auth_decision=True)
    status, _, seen = ask(app, None, HTTP_OPENSTACK_SYSTEM_SCOPE="all", HTTP_X_ROLES="admin")
    assert status == 200
    assert seen["roles"] == []
    assert "system_scope" not in seen


def test_keystone_out_of_reach_is_503(keystone: RunningKeystone, conf: cfg.ConfigOpts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    conf.set_default("auth_url", f"http://127.0.0.1:{port}/v3", group=auth.GROUP)
    conf.set_default("http_request_max_retries", 0, group=auth.GROUP)
    assert ask(auth.protect(show_context, conf), keystone.token())[0] == 503


def test_access_rules_of_an_application_credential(
    keystone: RunningKeystone, conf: cfg.ConfigOpts
) -> None:
    token = _application_credential_token(keystone, "compute", "/servers")
    app = auth.protect(show_context, conf, service_type="compute")
    assert ask(app, token, "/servers")[0] == 200
    assert ask(app, token, "/flavors")[0] == 401
    assert ask(app, token, "/servers/x")[0] == 401
    assert ask(app, token, "/servers", REQUEST_METHOD="POST")[0] == 401
    assert ask(auth.protect(show_context, conf), token, "/servers")[0] == 401
    other = auth.protect(show_context, conf, service_type="image")
    assert ask(other, token, "/servers")[0] == 401


@pytest.mark.parametrize("path", ["/v2.1/servers/**", "/compute/v2.1/servers/**"])
def test_access_rules_name_paths_with_or_without_the_mount_point(
    keystone: RunningKeystone, conf: cfg.ConfigOpts, path: str
) -> None:
    token = _application_credential_token(keystone, "compute", path)
    app = auth.protect(show_context, conf, service_type="compute")
    assert ask(app, token, "/v2.1/servers/1", SCRIPT_NAME="/compute")[0] == 200
    assert ask(app, token, "/v2.1/flavors/1", SCRIPT_NAME="/compute")[0] == 401


@pytest.mark.parametrize("kind", ["volumev3", "block-storage"])
def test_access_rules_name_a_service_by_any_of_its_types(
    keystone: RunningKeystone, conf: cfg.ConfigOpts, kind: str
) -> None:
    token = _application_credential_token(keystone, kind, "/v3/volumes")
    app = auth.protect(show_context, conf, service_type="block-storage")
    assert ask(app, token, "/v3/volumes", SCRIPT_NAME="/volume")[0] == 200
    assert ask(app, token, "/v3/snapshots", SCRIPT_NAME="/volume")[0] == 401


def _application_credential_token(keystone: RunningKeystone, service: str, path: str) -> str:
    """Return a token that may GET this path of a service and nothing else."""
    session = keystone.session()
    user = session.get_user_id()
    rule = {"service": service, "method": "GET", "path": path}
    credential = session.post(
        f"{keystone.auth_url}/users/{user}/application_credentials",
        json={"application_credential": {"name": uuid.uuid4().hex, "access_rules": [rule]}},
    ).json()["application_credential"]
    identity = {
        "methods": ["application_credential"],
        "application_credential": {"id": credential["id"], "secret": credential["secret"]},
    }
    answer = session.post(
        f"{keystone.auth_url}/auth/tokens",
        json={"auth": {"identity": identity}},
        authenticated=False,
    )
    return str(answer.headers["X-Subject-Token"])


def test_an_adapter_finds_its_service(keystone: RunningKeystone, conf: cfg.ConfigOpts) -> None:
    conf.set_override("service_type", "identity", group=CLIENT_GROUP)
    conf.set_override("valid_interfaces", ["internal"], group=CLIENT_GROUP)
    client = credentials.adapter(conf, CLIENT_GROUP)
    assert client.get_endpoint() == keystone.auth_url.removesuffix("/v3")
    assert client.get("/v3/projects").status_code == 200
    access = access_of(client.session)
    assert (access.username, access.project_name) == ("micronova", "service")


def test_a_configuration_file_is_enough(
    keystone: RunningKeystone, tmp_path: Any, conf: cfg.ConfigOpts
) -> None:
    """An operator's file, read by the ordinary option names, gives a working token check."""
    path = tmp_path / "micronova.conf"
    path.write_text(
        f"[keystone_authtoken]\nauth_type = password\nauth_url = {keystone.auth_url}\n"
        f"username = micronova\npassword = {keystone.passwords['micronova']}\n"
        "project_name = service\nuser_domain_name = Default\nproject_domain_name = Default\n"
    )
    own = cfg.ConfigOpts()
    auth.register(own)
    own([], project="micronova", default_config_files=[str(path)])
    assert ask(auth.protect(show_context, own), keystone.token())[0] == 200
    _, headers, _ = ask(auth.protect(show_context, own), None)
    assert headers["WWW-Authenticate"].startswith('Keystone uri="http://')


def test_no_proxy_of_the_environment_gets_tokens_or_passwords(
    keystone: RunningKeystone, conf: cfg.ConfigOpts, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = keystone.token()
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        url = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, url)
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv("NO_PROXY", "")
        status, _, seen = ask(auth.protect(show_context, conf), token)
        assert (status, seen["user_name"]) == (200, "demo")
        session = credentials.session(conf, CLIENT_GROUP)
        assert session.get(f"{keystone.auth_url}/auth/projects").status_code == 200
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody came
            proxy.accept()

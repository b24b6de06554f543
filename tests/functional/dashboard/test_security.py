"""What the dashboard must never do, whatever a browser or another site sends."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import falcon.testing
import pytest
import requests

from dashboard import config
from dashboard.app import make_app
from dashboard.page import Page
from dashboard.sections import SECTIONS
from dashboard.sessions import Session, making
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import SESSION_COOKIE, Browser, Parsed, kept
from tests.functional.dashboard.service import TLS, behind_proxy, log_in, post

UUID = "11111111-1111-1111-1111-111111111111"
SCRIPT = "<script>alert(1)</script>"
PAGES = [page for section in SECTIONS for page in section.pages]
OWN = ("/logout", "/password/change", "/project", "/theme")


NAMED = {
    "{aggregate_id:int}": "1",
    "{action}": "stop",
    "{change}": "enable",
    "{credential_id}": UUID.replace("-", ""),
    "{flavor_id}": "42",
    "{group_id}": UUID.replace("-", ""),
    "{host}": "pve1",
    "{number:int}": "1",
    "{project_id}": UUID.replace("-", ""),
    "{role_id}": UUID.replace("-", ""),
    "{steering}": "pause",
    "{user_id}": UUID.replace("-", ""),
}


def path_of(page: Page) -> str:
    """Return a path that the page is for."""
    path = re.sub(r"\{[a-z_]+:uuid\}", UUID, page.path)
    for parameter, value in NAMED.items():
        path = path.replace(parameter, value)
    assert "{" not in path
    return path


GETS = [path_of(page) for page in PAGES if page.method == "GET"]
POSTS = [path_of(page) for page in PAGES if page.method == "POST"]
PUTS = [path_of(page) for page in PAGES if page.method == "PUT"]
DATA_TYPE = "application/octet-stream"


def volumes(cloud: EmbeddedCloud) -> list[str]:
    """Return what the forged requests of these tests would add to."""
    return [one.name for one in cloud.connection().block_storage.volumes()]


# --- sessions


def test_logging_in_changes_the_session(stranger: Browser) -> None:
    fixed = {"domain": "127.0.0.1", "path": "/dashboard/"}
    stranger.http.cookies.set(SESSION_COOKIE, "chosen-by-somebody-else", **fixed)
    stranger.log_in()
    first = stranger.name
    assert first != "chosen-by-somebody-else"
    assert len(first) >= 43
    stranger.log_in()
    assert stranger.name != first
    assert kept(stranger.cloud).read(first) is None


def test_the_cookies_are_out_of_reach(stranger: Browser) -> None:
    stranger.log_in()
    stranger.get("/")
    stranger.submit("/theme", theme="dark")
    assert len(stranger.http.cookies) == 3
    for cookie in stranger.http.cookies:
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.get_nonstandard_attr("SameSite") == "Lax"
        assert cookie.path == "/dashboard/"


@pytest.mark.parametrize("path", GETS)
def test_without_a_session_there_is_the_login(stranger: Browser, path: str) -> None:
    stranger.get(f"{path}?limit=5")
    assert stranger.path == "/login"
    asked = parse_qs(urlsplit(stranger.page.url).query)
    assert asked == {"next": [f"/dashboard{path}?limit=5"]}


@pytest.mark.parametrize("name", ["x", "A" * 43, "é", "../../session.key", "a" * 4000])
def test_a_forged_session_is_none(stranger: Browser, name: str) -> None:
    cookie = f"{SESSION_COOKIE}={name}".encode()
    stranger.get("/servers", headers={"Cookie": cookie})
    assert stranger.path == "/login"


EXPIRED: tuple[Callable[[Session], Session], ...] = (
    lambda one: dataclasses.replace(one, seen=time.time() - 1801),
    lambda one: dataclasses.replace(one, until=time.time() - 1),
)


@pytest.mark.parametrize("change", EXPIRED, ids=["idle", "over"])
def test_an_expired_session_is_none(
    stranger: Browser, change: Callable[[Session], Session]
) -> None:
    stranger.log_in()
    kept(stranger.cloud).write(stranger.name, change(stranger.session))
    stranger.get("/servers")
    assert stranger.path == "/login"
    stranger.log_in(next_path="/dashboard/volumes?limit=3")
    assert stranger.page.url.endswith("/dashboard/volumes?limit=3")


def test_htmx_goes_to_the_login_too(stranger: Browser) -> None:
    stranger.get("/servers/rows", headers={"HX-Request": "true"})
    assert stranger.status == 401
    assert stranger.page.headers["HX-Redirect"] == "/dashboard/login"


def ask_token(browser: Browser, token: str) -> int:
    """Return what Keystone answers about a token."""
    sent = {"X-Auth-Token": token, "X-Subject-Token": token}
    url = f"{browser.cloud.auth_url}/auth/tokens"
    return requests.get(url, headers=sent, timeout=30).status_code


def test_logging_out_ends_the_session_and_its_token(stranger: Browser) -> None:
    stranger.log_in()
    name, token = stranger.name, stranger.session.token
    assert ask_token(stranger, token) == 200
    stranger.get("/")
    stranger.submit("/logout")
    assert stranger.path == "/login"
    assert SESSION_COOKIE not in stranger.http.cookies
    assert kept(stranger.cloud).read(name) is None
    assert ask_token(stranger, token) in (401, 404)
    stranger.get("/servers", headers={"Cookie": f"{SESSION_COOKIE}={name}"})
    assert stranger.path == "/login"


def test_switching_the_project_ends_the_old_token(stranger: Browser) -> None:
    stranger.log_in("admin")
    before = stranger.session.token
    choices = stranger.form("/project").choices["project"]
    stranger.submit("/project", project=choices["demo"])
    after = stranger.session.token
    assert ask_token(stranger, before) in (401, 404)
    assert ask_token(stranger, after) == 200
    # Once more: the new token is good for the next switch.
    stranger.submit("/project", project=choices["admin"])
    assert stranger.status == 200
    assert ask_token(stranger, after) in (401, 404)


def test_a_token_that_the_apis_refuse_ends_the_session(stranger: Browser) -> None:
    stranger.log_in()
    refused = dataclasses.replace(stranger.session, token="gAAAAAB-nobody-gave-this")
    kept(stranger.cloud).write(stranger.name, refused)
    stranger.get("/servers")
    assert stranger.path == "/login"


def test_the_store_shows_nothing(stranger: Browser) -> None:
    stranger.log_in()
    folder = stranger.cloud.state_dir / "dashboard"
    files = [path for path in folder.iterdir() if path.is_file()]
    assert len(files) >= 2
    for path in files:
        assert path.stat().st_mode & 0o077 == 0, path
        content = path.read_bytes()
        for secret in stranger.secrets:
            assert secret.encode() not in content


# --- logins

REFUSED_LOGIN = "User name, password or domain is wrong."


def test_a_wrong_password_and_then_too_many(stranger: Browser, member: Browser) -> None:
    for _number in range(5):
        found = stranger.log_in(user="demo-2", password="wrong")
        assert (stranger.status, stranger.path) == (401, "/login")
        assert REFUSED_LOGIN in found.text
        assert stranger.form("/login").fields["user"] == "demo-2"
        assert stranger.form("/login").fields["password"] == ""
    assert "Too many failed logins" in stranger.log_in(user="demo-2", password="wrong").text
    assert SESSION_COOKIE not in stranger.http.cookies
    stranger.log_in()
    assert stranger.status == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"user": ""},
        {"user": "x" * 5000},
        {"domain": "nowhere"},
        {"user": "\x00"},
        {"password": "p" * 100_000},
        {"user": SCRIPT},
    ],
    ids=["none", "long", "domain", "nul", "password", "script"],
)
def test_odd_logins_are_refused(stranger: Browser, fields: dict[str, str]) -> None:
    found = stranger.log_in(**fields)
    assert stranger.status == 401
    assert REFUSED_LOGIN in found.text


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/dashboard/\\evil.example",
        "/dashboard//evil.example",
        "/dashboard/%0d%0aSet-Cookie:x=y".replace("%0d%0a", "\r\n"),
        "javascript:alert(1)",
        "/dashboardx/",
        "///evil.example/dashboard/",
        "/dashboard/@evil.example:x\t",
    ],
)
def test_a_login_leads_nowhere_else(stranger: Browser, target: str) -> None:
    stranger.log_in(next_path=target)
    assert stranger.page.url == f"{stranger.base}/"
    stranger.submit("/theme", theme="light", back=target)
    assert stranger.page.url == f"{stranger.base}/"


def test_a_login_without_its_token_is_refused(stranger: Browser) -> None:
    given = stranger.cloud.config("micronova-demo").auth
    stranger.get("/login")
    fields = stranger.form("/login").fields | {
        "user": given["username"],
        "password": given["password"],
    }
    stranger.post("/login", fields | {"csrf": ""})
    assert stranger.status == 403
    stranger.post("/login", fields, {"Origin": "https://evil.example"})
    assert stranger.status == 403
    assert SESSION_COOKIE not in stranger.http.cookies


# --- forged requests


@pytest.mark.parametrize("path", [*POSTS, *OWN])
def test_no_change_without_a_csrf_token(member: Browser, path: str) -> None:
    for forged in ({}, {"csrf": ""}, {"csrf": "x" * 43}, {"csrf": "é"}):
        found = member.post(path, {"name": "forged", "size": "1", "theme": "dark", **forged})
        assert member.status == 403
        assert "another site has sent it" in found.text
    assert volumes(member.cloud) == []
    member.get("/")
    assert member.status == 200
    assert 'data-theme="auto"' in member.page.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_no_change_for_another_site(member: Browser, headers: dict[str, str]) -> None:
    fields = {"csrf": member.csrf, "name": "forged", "size": "1"}
    member.post("/volumes", fields, headers)
    assert member.status == 403
    member.post("/logout", fields, headers)
    assert member.status == 403
    assert volumes(member.cloud) == []
    member.get("/")
    assert member.status == 200


def test_the_token_of_another_session_is_none(member: Browser, stranger: Browser) -> None:
    stranger.log_in()
    member.post("/volumes", {"csrf": stranger.csrf, "name": "forged", "size": "1"})
    assert member.status == 403
    assert volumes(member.cloud) == []


@pytest.mark.parametrize("path", [one for one in POSTS if not one.startswith("/access")])
def test_a_reader_changes_nothing(reader: Browser, path: str) -> None:
    found = reader.post(path, {"csrf": reader.csrf, "name": "read", "size": "1"})
    assert reader.status == 403
    assert "Your role doesn't allow this." in found.text
    assert volumes(reader.cloud) == []


@pytest.mark.parametrize("path", PUTS)
def test_no_upload_is_forged(member: Browser, reader: Browser, path: str) -> None:
    for browser, headers in (
        (member, {}),
        (member, {"X-CSRF-Token": "x" * 43}),
        (member, {"X-CSRF-Token": reader.csrf}),
        (member, {"X-CSRF-Token": member.csrf, "Origin": "https://evil.example"}),
        (member, {"X-CSRF-Token": member.csrf, "Sec-Fetch-Site": "same-site"}),
        (reader, {"X-CSRF-Token": reader.csrf}),
    ):
        sent = {"Content-Type": DATA_TYPE, **headers}
        answer = browser.http.put(browser.url(path), data=b"x", headers=sent, timeout=30)
        assert answer.status_code == 403


@pytest.mark.parametrize("path", PUTS)
def test_an_upload_has_a_type_and_a_length(member: Browser, path: str) -> None:
    token = {"X-CSRF-Token": member.csrf}
    for data, kind, status in ((b"x", "text/plain", 415), (b"", DATA_TYPE, 400)):
        sent = {**token, "Content-Type": kind}
        answer = member.http.put(member.url(path), data=data, headers=sent, timeout=30)
        assert answer.status_code == status


def test_a_reader_gets_no_buttons(reader: Browser) -> None:
    for path in (
        "/",
        "/servers",
        "/volumes",
        "/networks",
        "/images",
        "/quotas",
        "/explain",
        "/explain/decisions",
    ):
        found = reader.get(path)
        sent = {one.action.removeprefix("/dashboard") for one in found.forms}
        searches = ("/search", "/servers", "/volumes", "/images", "/explain")
        assert sent <= {*OWN, *searches, "/explain/decisions"}
        assert not any("create" in one or "delete" in one for one in found.links)
    for path in (
        "/servers/create",
        "/images/create",
        *(f"/{kind}/{UUID}/delete" for kind in ("servers", "volumes", "images")),
    ):
        reader.get(path)
        assert reader.status == 403


# --- what others wrote


def a_server(cloud: EmbeddedCloud, who: str, **facts: Any) -> Any:
    """Create a server."""
    connection = cloud.connection(who)
    made = connection.compute.create_server(
        image_id=connection.image.find_image("cirros").id,
        flavor_id=connection.compute.find_flavor("m1.nano").id,
        networks="auto",
        **facts,
    )
    return connection.compute.wait_for_server(made, wait=60)


def test_names_are_text(cleared: None, member: Browser) -> None:
    server = a_server(
        member.cloud,
        "micronova-demo",
        name=SCRIPT,
        metadata={"note": '"><img src=x onerror=alert(1)>'},
    )
    paths = ("", "/delete", "/resize")
    for path in ("/servers", "/explain?what=script", *(f"/servers/{server.id}{p}" for p in paths)):
        found = member.get(path)
        assert member.status == 200
        assert SCRIPT in found.text
        assert "<script>alert" not in member.page.text
        assert "<img" not in member.page.text
    assert '"><img src=x onerror=alert(1)>' in member.get(f"/servers/{server.id}").text
    member.get(f"/servers?name={SCRIPT}")
    assert "<script>alert" not in member.page.text
    member.get(f"/explain?what={SCRIPT}")
    assert "<script>alert" not in member.page.text


def test_another_projects_server_is_none(cleared: None, member: Browser) -> None:
    server = a_server(member.cloud, "micronova-admin", name="secret-name")
    path = f"/servers/{server.id}"
    for below in ("", "/delete", "/resize"):
        assert "secret-name" not in member.get(f"{path}{below}").text
        assert member.status == 404
    for below in ("stop", "delete", "console"):
        member.post(f"{path}/{below}", {"csrf": member.csrf})
        assert "secret-name" not in member.page.text
        assert "could not be found" in member.parsed.text
    for other in ("/servers?all_tenants=1", "/servers?name=secret", f"/explain?what={server.id}"):
        assert "secret-name" not in member.get(other).text
    for other in (f"/servers?q={server.id}", "/servers?q=secret", "/servers/rows?all_tenants=1"):
        member.get(other)
        assert "secret-name" not in member.page.text
    chosen = {"csrf": member.csrf, "server": server.id, "action": "delete"}
    member.post("/servers/bulk", chosen)
    assert "secret-name" not in member.page.text
    member.post("/servers/bulk", {**chosen, "sure": "yes"})
    assert "could not be found" in member.parsed.text
    still = member.cloud.connection("micronova-admin").compute.get_server(server.id)
    assert still.status == "ACTIVE"


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/servers/nope",
        f"/servers/{UUID}",
        f"/servers/{UUID}/nope",
        "/static/x",
        "/static/../config.py",
        "/%2e%2e/config",
        "/servers/%00",
    ],
)
def test_unknown_paths(member: Browser, path: str) -> None:
    found = member.get(path)
    assert member.status == 404
    assert "Not found" in found.text


@pytest.mark.parametrize("ending", ["#1", "?x=y", "%23", "/../pve1#", "/..", " ", "+", ";x"])
@pytest.mark.parametrize(
    "path",
    [
        *("/nodes/pve1{}", "/nodes/pve1{}/drain", "/nodes/pve1{}/loss", "/flavors/{flavor}{}"),
        *("/quotas/{project}{}", "/projects/{project}{}", "/users/{user}{}"),
    ],
)
def test_a_longer_name_is_another_one(admin: Browser, path: str, ending: str) -> None:
    connection = admin.cloud.connection("micronova-admin")
    known = {
        "flavor": connection.compute.find_flavor("m1.nano").id,
        "project": connection.current_project_id,
        "user": connection.current_user_id,
    }
    admin.get(path.format("", **known))
    assert admin.status == 200
    admin.get(path.format(quote(ending, safe=""), **known))
    assert admin.status in (400, 404)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=-1",
        "limit=99999999999999999999",
        "limit=²",
        "marker=nothing",
        "marker=%00",
        "name=%00",
        "name=" + "x" * 2000,
        "name=[",
        "sort=evil&dir=evil&status=evil",
        "all_tenants=1",
        "&".join("a=b" for _ in range(600)),
        "%ff=%ff",
    ],
    ids=lambda query: query[:30],
)
@pytest.mark.parametrize("path", ["/servers", "/volumes", "/networks", "/images", "/quotas"])
def test_odd_queries(member: Browser, path: str, query: str) -> None:
    member.get(f"{path}?{query}")
    assert member.status in (200, 400, 404)


@pytest.mark.parametrize(
    "what", ["%00", "x" * 300, "/../servers", "req-" + "0" * 32, "%25", "a b", UUID]
)
def test_odd_questions(member: Browser, what: str) -> None:
    member.get(f"/explain?what={what}")
    assert member.status in (200, 400)


def test_large_and_broken_forms(member: Browser) -> None:
    csrf = member.csrf
    member.post("/volumes", {"csrf": csrf, "name": "x" * 300_000})
    assert member.status == 413
    many = {f"f{number}": "x" for number in range(600)}
    member.post("/volumes", {"csrf": csrf, **many})
    assert member.status == 400
    answer = member.http.post(member.url("/volumes"), data=b"\xff\xfe", timeout=30)
    assert answer.status_code == 400
    assert volumes(member.cloud) == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods(member: Browser, method: str) -> None:
    for path in ("/servers", "/login", "/"):
        answer = member.http.request(method, member.url(path), timeout=30)
        assert answer.status_code == 405
    answer = member.http.get(member.url("/logout"), timeout=30)
    assert answer.status_code == 405


# --- without a cloud


@pytest.fixture
def alone(tmp_path: Path) -> falcon.testing.TestClient:
    """A dashboard behind a proxy, whose Keystone is down."""
    return falcon.testing.TestClient(make_app(behind_proxy(tmp_path, "http://127.0.0.1:9/v3")))


def test_under_tls_cookies_are_bound_to_the_host(alone: falcon.testing.TestClient) -> None:
    answer = alone.simulate_get("/login", headers=TLS, remote_addr="127.0.0.1")
    assert answer.status_code == 200
    cookie = answer.cookies["__Host-micronova-login"]
    assert (cookie.secure, cookie.http_only, cookie.path) == (True, True, "/")
    assert cookie.same_site == "Lax"


def test_when_keystone_is_down_the_page_says_so(alone: falcon.testing.TestClient) -> None:
    answer = log_in(alone, user="demo", password="x")
    assert answer.status_code == 503
    assert "Keystone can't be reached." in Parsed(answer.text).text


def test_under_tls_browsers_forget_the_session_too(
    alone: falcon.testing.TestClient, tmp_path: Path
) -> None:
    options = behind_proxy(tmp_path, "http://127.0.0.1:9/v3")[config.GROUP]
    at = time.time()
    session = Session("token", {}, (), csrf="c", began=at, seen=at, until=at + 600)
    name = making.sessions(options).begin(session)
    answer = post(alone, "/logout", f"__Host-micronova-session={name}", {"csrf": "c"})
    assert answer.headers["location"] == "/dashboard/login"
    cookie = answer.cookies["__Host-micronova-session"]
    assert (cookie.value, cookie.secure, cookie.path) == ("", True, "/")
    assert cookie.max_age is not None
    assert cookie.max_age <= 0

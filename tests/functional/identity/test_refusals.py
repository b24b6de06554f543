"""Requests that Keystone can't work with: refused in its own form, and never its failure."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from identity.keystone import LOGIN_FAILURES
from tests.functional.keystone_fixture import RunningKeystone


class Asker:
    """An administrator who sends bytes as they are."""

    def __init__(self, keystone: RunningKeystone) -> None:
        self._port = keystone.server.port
        self._token = keystone.token("admin", "admin")

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Return the status and the JSON of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        sent = {"X-Auth-Token": self._token, "Content-Type": "application/json"}
        try:
            connection.request(method, f"/v3/{path}", body, sent | dict(headers or {}))
            answer = connection.getresponse()
            raw = answer.read()
            kind = answer.headers.get("Content-Type", "")
            assert not raw or kind.startswith("application/json"), raw
            assert answer.headers["x-openstack-request-id"]
            return answer.status, json.loads(raw) if raw else None
        finally:
            connection.close()


@pytest.fixture(scope="module")
def asker(keystone: RunningKeystone) -> Asker:
    return Asker(keystone)


def assert_refused(answer: tuple[int, Any], message: str) -> None:
    status, said = answer
    assert status == 400, said
    assert set(said) == {"error"}
    assert said["error"]["code"] == 400
    assert said["error"]["title"] == "Bad Request"
    assert message in said["error"]["message"]


LISTS = ("users", "projects", "roles", "domains", "services", "endpoints", "registered_limits")


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", ["x", "today", "%00", "%D9%A1x", "%C2%B2", "5.0", "x&limit=5"])
def test_a_limit_that_is_no_number(asker: Asker, path: str, limit: str) -> None:
    what = "control character" if limit == "%00" else "limit is not a number"
    assert_refused(asker.ask("GET", f"{path}?limit={limit}"), what)


@pytest.mark.parametrize("limit", ["1", "0", "", "9" * 20, "9" * 3000])
def test_a_limit_that_is_a_number(asker: Asker, limit: str) -> None:
    assert asker.ask("GET", f"users?limit={limit}")[0] == 200


@pytest.mark.parametrize("host", ["a..b", ".a", "x" * 64, "x." * 300, "a b", "a:b:c", "[a..b]"])
def test_a_host_that_is_none(asker: Asker, host: str) -> None:
    assert_refused(asker.ask("GET", "users", headers={"Host": host}), "Host header is not a host")


TIMES = ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "99991231T235959-2359")


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize(
    "path", ["users?password_expires_at=gt:{}", "users?password_expires_at={}"]
)
def test_a_time_of_no_year(asker: Asker, path: str, time: str) -> None:
    assert_refused(asker.ask("GET", path.format(quote(time))), "is a time of no year")


@pytest.mark.parametrize("time", TIMES)
def test_revocations_since_a_time_of_no_year(asker: Asker, time: str) -> None:
    path = f"OS-REVOKE/events?since={quote(time)}"
    assert_refused(asker.ask("GET", path), "since is a time of no year")


@pytest.mark.parametrize("time", ["gt:2026-01-01T00:00:00Z", "lte:2026-01-01T00:00:00%2B02:00"])
def test_a_time_passes(asker: Asker, time: str) -> None:
    assert asker.ask("GET", f"users?password_expires_at={time}")[0] == 200


@pytest.mark.parametrize("path", ["projects", "services", "services/"])
@pytest.mark.parametrize("body", [None, b"", b"{}", b'{"x": 1}'])
def test_a_body_without_what_is_to_be_made(asker: Asker, path: str, body: bytes | None) -> None:
    status, said = asker.ask("POST", path, body)
    assert (status, said["error"]["code"]) == (400, 400)
    if body != b'{"x": 1}' or path != "projects":
        assert_refused((status, said), f"'{path.strip('/')[:-1]}' is a required property")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("users/%00", "path holds a control character"),
        ("users/a%0Ab", "path holds a control character"),
        ("users/%FF", "path is not UTF-8"),
        ("users?name=%00", "query string holds a control character"),
        ("users?%7F=a", "query string holds a control character"),
        ("users?name=%FF", "query string is not UTF-8"),
        ("users/" + "a" * 256, "part of the path is longer than 255"),
        ("users/" + "%C3%A9" * 256, "part of the path is longer than 255"),
        ("role_assignments?user.id=" + "a" * 256, "user.id is longer than 255"),
        ("users?marker=" + "a" * 256, "marker is longer than 255"),
    ],
)
def test_what_no_path_or_query_names(asker: Asker, path: str, message: str) -> None:
    assert_refused(asker.ask("GET", path), message)


@pytest.mark.parametrize("path", ["users/" + "a" * 255, "users/%C3%A9"])
def test_what_is_not_there_is_not_found(asker: Asker, path: str) -> None:
    assert asker.ask("GET", path)[0] == 404


def _service(**members: Any) -> bytes:
    return json.dumps({"service": {"type": "refused", "name": "refused", **members}}).encode()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" * 65 + b"]" * 65, "nested more than 64"),
        (b"[" * 1100 + b"]" * 1100, "Malformed request body"),
        (b'{"user": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", "Malformed request body"),
        (b'{"a":' * 1100 + b"1" + b"}" * 1100, "Malformed request body"),
        (b"9" * 4400, "Malformed request body"),
        (b'{"endpoint": {"legacy_endpoint_id": ["a"]}}', "legacy_endpoint_id is not a text"),
        (_service(x=10**30), "the number x is too large"),
        (_service(x=-(10**19)), "the number x is too large"),
        (_service(name="a\0b"), "null character"),
        (_service(name="\ud800"), "Malformed request body"),
        (_service(x=float("nan")), "Malformed request body"),
        (b'"\xff"', "Malformed request body"),
        ('{"service": {}}'.encode("utf-16"), "Malformed request body"),
        (b'{"trust": {"expires_at": "9999-12-31T23:59:59-23:59"}}', "expires_at is a time of no"),
    ],
)
@pytest.mark.parametrize("path", ["services", "auth/tokens", "projects"])
def test_a_body_that_nobody_can_work_with(
    asker: Asker, path: str, body: bytes, message: str
) -> None:
    assert_refused(asker.ask("POST", path, body), message)
    if path == "auth/tokens":
        assert_refused(asker.ask("POST", path, body, {"Content-Type": ""}), message)


def test_a_body_in_chunks_is_read(asker: Asker) -> None:
    parts = iter((b'{"role": {"name": ', b'"in-chunks"}}'))
    status, said = asker.ask("POST", "roles", parts)  # type: ignore[arg-type]
    assert status == 201
    assert said["role"]["name"] == "in-chunks"
    assert asker.ask("DELETE", f"roles/{said['role']['id']}")[0] == 204


def test_a_body_that_is_too_long(asker: Asker) -> None:
    status, said = asker.ask("POST", "roles", b'"' + b"x" * 150_000 + b'"')
    assert (status, said["error"]["code"]) == (413, 413)


def test_other_content_types_are_left_to_keystone(asker: Asker) -> None:
    status, said = asker.ask("POST", "roles", b"a=b", {"Content-Type": "text/plain"})
    assert status == 400
    assert "Content-Type" in said["error"]["message"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "application_credential is not an object"),
        ([1], "application_credential is not an object"),
        (True, "application_credential is not an object"),
        ({"id": ["a"], "secret": "x"}, "id is not a text"),
        ({"id": {"a": 1}, "secret": "x"}, "id is not a text"),
        ({"name": ["a"], "secret": "x", "user": {"id": "a"}}, "name is not a text"),
        ({"name": "a", "secret": "x", "user": ["a"]}, "user is not an object"),
        ({"name": "a", "secret": "x", "user": {"name": "a", "domain": "b"}}, "domain is not an"),
    ],
)
def test_a_login_of_another_form(asker: Asker, given: Any, message: str) -> None:
    identity = {"methods": ["application_credential"], "application_credential": given}
    body = json.dumps({"auth": {"identity": identity}}).encode()
    assert_refused(asker.ask("POST", "auth/tokens", body), message)


def test_logins_of_the_right_form_are_keystones(asker: Asker) -> None:
    given = {"id": "unknown", "secret": "x"}
    identity = {"methods": ["application_credential"], "application_credential": given}
    body = json.dumps({"auth": {"identity": identity}}).encode()
    assert asker.ask("POST", "auth/tokens", body)[0] in (401, 404)


def test_slashes_in_a_row_are_one(asker: Asker) -> None:
    assert asker.ask("GET", "/users//")[0] == 200
    refused = asker.ask("POST", "users//application_credentials", b"[]")
    assert_refused(refused, "valid JSON")
    unknown = {"X-Auth-Token": "\xe9"}
    assert asker.ask("POST", "users//application_credentials", b'{"a": {}}', unknown)[0] < 500


def test_names_of_logins_write_no_lines_of_the_log(
    keystone: RunningKeystone, asker: Asker
) -> None:
    name = "nobody\n2026-01-01 00:00:00.000 1 INFO keystone forged\x1b[2J\u2028\u202e\x9b"
    user = {"name": name, "domain": {"id": "default"}, "password": "x"}
    login = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
    status, _ = asker.ask("POST", "auth/tokens", json.dumps(login).encode())
    assert status == 401
    lines = keystone.server.log_path.read_text("utf-8").split("\n")
    named = [line for line in lines if "forged" in line]
    assert named
    assert not [line for line in named if line.startswith("2026-01-01")]
    assert all(line.isprintable() for line in lines)


def test_passwords_tried_on_many_users_are_few(asker: Asker, keystone: RunningKeystone) -> None:
    """From an address that no other test has; who logged in there before still may."""
    given = keystone.passwords["demo-reader"]

    def log_in(name: str, password: str) -> int:
        user = {"name": name, "domain": {"id": "default"}, "password": password}
        login = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
        where = {"X-Forwarded-For": "203.0.113.9"}
        return asker.ask("POST", "auth/tokens", json.dumps(login).encode(), where)[0]

    assert log_in("demo-reader", given) == 201
    tried = [log_in(f"nobody-{number}", "Password1") for number in range(LOGIN_FAILURES + 1)]
    assert tried == [401] * LOGIN_FAILURES + [429]
    assert log_in("demo", keystone.passwords["demo"]) == 429
    assert log_in("demo-reader", given) == 201
    assert keystone.token()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "auth/tokens", b"{}", 400),
        ("POST", "users", b'{"user": {"name": 1}}', 400),
        ("POST", "auth/tokens", b'{"auth": {"identity": {"methods": ["none"], "none": {}}}}', 401),
        ("GET", "auth/tokens", None, 404),
    ],
)
def test_refusals_are_one_line_of_the_log(
    keystone: RunningKeystone,
    asker: Asker,
    method: str,
    path: str,
    body: bytes | None,
    status: int,
) -> None:
    """Who needs no token must not fill the log with tracebacks."""
    before = len(keystone.server.log_path.read_text("utf-8"))
    assert asker.ask(method, path, body)[0] == status
    written = keystone.server.log_path.read_text("utf-8")[before:].splitlines()
    assert len(written) <= 1, written
    assert not [line for line in written if " ERROR " in line]

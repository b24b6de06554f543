"""Passwords that are tried from one address."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import pytest

from identity.guard import Guard
from identity.logins import SECONDS, Logins

ELSEWHERE = "192.0.2.7"
RIGHT = "right"


class Keystone:
    """Knows one password of everybody."""

    def __init__(self) -> None:
        self.asked = 0
        self.clock = 0.0
        self.app = Guard(Logins(self, 3, lambda: self.clock))  # type: ignore[arg-type]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.asked += 1
        body = json.loads(environ["wsgi.input"].read() or b"{}")
        is_right = RIGHT in json.dumps(body)
        start_response("201 Created" if is_right else "401 Unauthorized", [])
        return [b"{}"]

    def ask(self, path: str, body: Any, **given: str) -> tuple[str, dict[str, str]]:
        raw = json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "wsgi.input": io.BytesIO(raw),
            "wsgi.errors": io.StringIO(),
            "CONTENT_LENGTH": str(len(raw)),
            "REMOTE_ADDR": ELSEWHERE,
            **given,
        }
        started: list[tuple[str, dict[str, str]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            started.append((status[:3], dict(headers)))

        b"".join(self.app(environ, start_response))  # type: ignore[arg-type]
        return started[0]

    def log_in(self, user: str, password: str = "wrong", **given: str) -> str:
        named = {"name": user, "domain": {"id": "default"}, "password": password}
        identity = {"methods": ["password"], "password": {"user": named}}
        return self.ask("/v3/auth/tokens", {"auth": {"identity": identity}}, **given)[0]


@pytest.fixture
def keystone() -> Keystone:
    return Keystone()


def fail(keystone: Keystone, **given: str) -> list[str]:
    return [keystone.log_in(f"user-{number}", **given) for number in range(5)]


def test_few_users_are_tried_from_one_address(keystone: Keystone) -> None:
    assert fail(keystone) == ["401", "401", "401", "429", "429"]
    assert keystone.asked == 3
    assert keystone.log_in("demo", RIGHT) == "429"


def test_the_answer_is_keystones_and_says_when(keystone: Keystone) -> None:
    fail(keystone)
    identity = {"methods": ["password"], "password": {"user": {"id": "x", "password": "y"}}}
    status, headers = keystone.ask("/v3/auth/tokens", {"auth": {"identity": identity}})
    assert (status, headers["Retry-After"]) == ("429", str(SECONDS))
    assert headers["Content-Type"] == "application/json"


def test_it_ends_after_a_time(keystone: Keystone) -> None:
    fail(keystone)
    keystone.clock = SECONDS
    assert fail(keystone) == ["401", "401", "401", "429", "429"]


def test_other_addresses_are_not_concerned(keystone: Keystone) -> None:
    fail(keystone)
    assert keystone.log_in("demo", REMOTE_ADDR="192.0.2.8") == "401"


def test_a_network_of_ipv6_is_one_address(keystone: Keystone) -> None:
    tried = [
        keystone.log_in("demo", REMOTE_ADDR=f"2001:db8::{number}:1") for number in range(1, 6)
    ]
    assert tried == ["401", "401", "401", "429", "429"]
    assert keystone.log_in("demo", REMOTE_ADDR="2001:db8:0:1::1") == "401"


def test_who_has_logged_in_from_there_goes_on(keystone: Keystone) -> None:
    assert keystone.log_in("demo", RIGHT) == "201"
    fail(keystone)
    assert keystone.log_in("demo", RIGHT) == "201"
    assert keystone.log_in("Demo", RIGHT) == "201"
    assert keystone.log_in("demo", RIGHT, REMOTE_ADDR="192.0.2.8") == "201"


def test_logins_that_succeed_count_for_nothing(keystone: Keystone) -> None:
    for number in range(9):
        assert keystone.log_in(f"user-{number}", RIGHT) == "201"


@pytest.mark.parametrize("given", [f"198.51.100.1, {ELSEWHERE}", ELSEWHERE])
def test_a_proxy_on_this_machine_names_the_client(keystone: Keystone, given: str) -> None:
    near = {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": given}
    assert fail(keystone, **near)[-1] == "429"
    assert keystone.log_in("demo") == "429"
    assert keystone.log_in("demo", REMOTE_ADDR="127.0.0.1") == "401"


def test_what_is_no_address_names_nobody(keystone: Keystone) -> None:
    tried = [
        keystone.log_in("demo", REMOTE_ADDR="127.0.0.1", HTTP_X_FORWARDED_FOR=f"{number}.x")
        for number in range(5)
    ]
    assert tried[-1] == "429"


def test_nobody_else_names_an_address(keystone: Keystone) -> None:
    tried = [
        keystone.log_in("demo", HTTP_X_FORWARDED_FOR=f"198.51.100.{number}") for number in range(5)
    ]
    assert tried[-1] == "429"


def test_changes_of_passwords_count(keystone: Keystone) -> None:
    body = {"user": {"original_password": "wrong", "password": "other"}}
    tried = [keystone.ask(f"/v3/users/{number}/password", body)[0] for number in range(5)]
    assert tried == ["401", "401", "401", "429", "429"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v3/auth/tokens", {"auth": {"identity": {"methods": ["token"], "token": {"id": "x"}}}}),
        ("/v3/users", {"user": {"name": "x"}}),
        ("/v3/auth/tokens", {"auth": []}),
    ],
)
def test_nothing_else_counts(keystone: Keystone, path: str, body: Any) -> None:
    assert {keystone.ask(path, body)[0] for _ in range(9)} == {"401"}

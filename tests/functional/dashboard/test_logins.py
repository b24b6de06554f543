"""How many logins may fail, and of whom; by a dashboard behind a proxy and a small Keystone."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import falcon.testing
import pytest

from dashboard import config
from dashboard.app import make_app
from tests.functional.dashboard.browser import Parsed
from tests.functional.dashboard.service import behind_proxy, log_in

RIGHT, DOWN = "right", "down"
TOO_MANY = "Too many failed logins"
EXPIRES = "2099-01-01T00:00:00.000000Z"


class Keystone:
    """Knows one password of everybody; another one is what it can't answer."""

    def __init__(self) -> None:
        self.asked = 0
        """Passwords that it was asked about."""
        self.while_asked: Callable[[], object] = lambda: None
        """What happens while it is asked about one."""
        keystone = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, {"projects": [{"id": "p", "name": "demo", "enabled": True}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(keystone.judge(body["auth"]["identity"]), {"token": _TOKEN})

            def _answer(self, status: int, body: Any) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("X-Subject-Token", "t")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Be silent."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v3"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def judge(self, identity: Any) -> int:
        """Return the status of an answer."""
        if "password" not in identity:
            return 201
        self.asked += 1
        self.while_asked()
        given = identity["password"]["user"]["password"]
        return {RIGHT: 201, DOWN: 503}.get(given, 401)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


_TOKEN = {"expires_at": EXPIRES, "user": {"id": "u", "name": "admin"}, "roles": []}


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    running = Keystone()
    yield running
    running.stop()


@pytest.fixture
def client(tmp_path: Path, keystone: Keystone) -> falcon.testing.TestClient:
    """Two failures are one too many."""
    conf = behind_proxy(tmp_path, keystone.url)
    conf.set_override("login_failures", 1, config.GROUP)
    return falcon.testing.TestClient(make_app(conf))


def fail(client: falcon.testing.TestClient, **more: str) -> bool:
    """Return whether Keystone was asked about a wrong password."""
    answer = log_in(client, **{"user": "admin", "password": "wrong", **more})
    assert answer.status_code == 401
    return TOO_MANY not in Parsed(answer.text).text


@pytest.mark.parametrize(
    "again", [{}, {"user": "ADMIN"}, {"domain": ""}, {"domain": "default"}], ids=str
)
def test_it_is_the_same_user(client: falcon.testing.TestClient, again: dict[str, str]) -> None:
    assert fail(client)
    assert not fail(client, **again)


@pytest.mark.parametrize(
    "other", [{"address": "192.0.2.2"}, {"user": "demo"}, {"domain": "other"}], ids=str
)
def test_others_may_still_log_in(client: falcon.testing.TestClient, other: dict[str, str]) -> None:
    assert fail(client)
    assert fail(client, **other)


def test_a_login_counts_while_keystone_is_asked(
    client: falcon.testing.TestClient, keystone: Keystone
) -> None:
    found: list[bool] = []

    def while_asked() -> None:
        if keystone.asked == 1:
            found.append(fail(client))

    keystone.while_asked = while_asked
    assert fail(client)
    assert found == [False]
    assert keystone.asked == 1


def test_a_login_that_succeeds_forgets_those_that_failed(
    tmp_path: Path, keystone: Keystone
) -> None:
    conf = behind_proxy(tmp_path, keystone.url)
    conf.set_override("login_failures", 2, config.GROUP)
    client = falcon.testing.TestClient(make_app(conf))
    for _ in range(2):
        assert fail(client)
        assert log_in(client, user="admin", password=RIGHT).status_code == 303
    assert [fail(client) for _ in range(3)] == [True, True, False]


def test_few_users_are_tried_from_one_address(tmp_path: Path, keystone: Keystone) -> None:
    conf = behind_proxy(tmp_path, keystone.url)
    conf.set_override("login_failures_of_address", 3, config.GROUP)
    client = falcon.testing.TestClient(make_app(conf))
    assert log_in(client, user="admin", password=RIGHT).status_code == 303
    near, far = "2001:db8::1:1", "2001:db8:0:1::1"
    tried = [fail(client, user=f"user-{number}", address=near) for number in range(5)]
    assert tried == [True, True, True, False, False]
    # A login that would succeed is refused as well; of its network, too, and nowhere else.
    assert log_in(client, user="admin", password=RIGHT, address="2001:db8::2").status_code == 401
    assert log_in(client, user="admin", password=RIGHT, address=far).status_code == 303


def test_what_keystone_cannot_answer_counts_for_nothing(client: falcon.testing.TestClient) -> None:
    for _ in range(3):
        assert log_in(client, user="admin", password=DOWN).status_code == 503
    assert fail(client)
    assert log_in(client, user="admin", password=DOWN).status_code == 401
    assert not fail(client)

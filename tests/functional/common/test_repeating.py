"""Requests of an adapter that are sent again: as keystoneauth1 sends them, and as it fails."""

from __future__ import annotations

import logging
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import exceptions as ksa
from keystoneauth1 import plugin
from keystoneauth1 import session as ksa_session

from common.clients import direct
from common.clients.repeating import Repeating
from simulator.http.certificate import server_context

MICROVERSION = {"OpenStack-API-Version": "placement 1.36"}
WITH_ID = {**MICROVERSION, "X-OpenStack-Request-ID": "req-1"}
BODY = {"resources": {"VCPU": 1}, "name": "größer", "nothing": None}
REQUESTS = [
    ("GET", "/", None),
    ("GET", "/allocation_candidates?resources=VCPU%3A1%2CDISK_GB%3A2&limit=1000", None),
    ("GET", "/usages?project_id=a+b&user_id=%C3%A4.-_", None),
    ("GET", "/resource_providers/a.b/../c d", None),
    ("GET", "/resource_providers/%41/é", None),
    ("PUT", "/allocations/4b1f", BODY),
    ("PUT", "/traits/CUSTOM_A", None),
    ("POST", "/allocations", []),
    ("POST", "/allocations", None),
    ("DELETE", "/allocations/4b1f", None),
]


class Login(plugin.BaseAuthPlugin):
    """Gives tokens, a new one for each that is refused, and counts looks into its catalog."""

    def __init__(self, url: str, *tokens: str) -> None:
        super().__init__()
        self.url, self.tokens, self.looks = url, list(tokens), 0

    def get_token(self, session: Any, **_: Any) -> str:
        return self.tokens[0]

    def get_endpoint(self, session: Any, **_: Any) -> str:
        self.looks += 1
        return self.url

    def invalidate(self) -> bool:
        if len(self.tokens) > 1:
            del self.tokens[0]
            return True
        return False


class Server(ThreadingHTTPServer):
    """Notes requests and gives the answers that a test wants, `{}` by default."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        super().__init__(address, Handler)
        self.scheme = "http"
        self.seen: list[tuple[Any, ...]] = []
        self.tokens: list[str | None] = []
        self.answer: Callable[[Handler], None] = Handler.fine
        self.released = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}/placement"

    def close(self) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that leave."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.requestline, sorted(self.headers.items()), body))
        self.server.tokens.append(self.headers["X-Auth-Token"])
        self.server.answer(self)

    do_GET = do_PUT = do_POST = do_DELETE = _serve

    def say(self, status: int, **headers: str) -> None:
        """Answer `{}` with this status."""
        self.send_response(status)
        for name, value in {"Content-Length": "2", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(b"{}")

    def fine(self) -> None:
        self.say(200)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def an_adapter(login: Login, session: dict[str, Any] | None = None, **options: Any) -> Any:
    made = ksa_session.Session(auth=login, session=direct.session(), **session or {})
    return ksa_adapter.Adapter(made, service_type="placement", **options)


def a_repeating(server: Server, *tokens: str, **options: Any) -> tuple[Repeating, Login]:
    """Return what has sent one request, and its login."""
    login = Login(server.url, *tokens or ("token",))
    made = Repeating(an_adapter(login, **options), "placement")
    assert made.request("GET", "/first", MICROVERSION).status_code == 200
    server.seen.clear()
    server.tokens.clear()
    return made, login


def through_keystoneauth(client: Any, method: str, path: str, headers: Any, body: Any) -> Any:
    more = {} if body is None else {"json": body}
    return client.request(path, method, headers=headers, raise_exc=False, **more)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"user_agent": "micronova", "additional_headers": {"X-More": "1"}},
        {"default_microversion": "1.2", "client_name": "name", "client_version": "2"},
        {"global_request_id": "req-always"},
        {"session": {"user_agent": "a", "additional_headers": {"X-More": "2"}}},
        {"session": {"original_ip": "192.0.2.1", "app_name": "app"}},
    ],
)
@pytest.mark.parametrize("headers", [MICROVERSION, WITH_ID])
def test_requests_are_sent_as_keystoneauth_sends_them(
    server: Server, options: dict[str, Any], headers: dict[str, str]
) -> None:
    repeating, _ = a_repeating(server, **options)
    client = an_adapter(Login(server.url, "token"), **options)
    for method, path, body in REQUESTS:
        through_keystoneauth(client, method, path, headers, body)
        repeating.request(method, path, headers, body)
        expected, sent = server.seen[-2:]
        assert sent == expected


def test_the_endpoint_is_found_once_for_each_token(server: Server) -> None:
    repeating, login = a_repeating(server, "old", "new")
    for _ in range(3):
        repeating.request("PUT", "/a", WITH_ID, BODY)
    assert login.looks == 1
    login.invalidate()
    login.url += "/moved"
    for _ in range(3):
        repeating.request("GET", "/a", WITH_ID)
    assert login.looks == 2
    assert [line for line, _, _ in server.seen[-3:]] == ["GET /placement/moved/a HTTP/1.1"] * 3
    assert server.tokens == ["old"] * 3 + ["new"] * 3


def test_a_path_that_must_be_encoded_costs_no_other_one(server: Server) -> None:
    repeating, login = a_repeating(server)
    repeating.request("GET", "/a b", WITH_ID)
    repeating.request("GET", "/ab", WITH_ID)
    assert login.looks == 2


def only(token: str) -> Callable[[Handler], None]:
    """Return answers that refuse all other tokens."""
    return lambda asked: asked.say(200 if asked.headers["X-Auth-Token"] == token else 401)


def test_a_refused_token_is_replaced(server: Server) -> None:
    repeating, _ = a_repeating(server, "old", "new")
    server.answer = only("new")
    assert repeating.request("PUT", "/a", WITH_ID, BODY).status_code == 200
    assert repeating.request("PUT", "/a", WITH_ID, BODY).status_code == 200
    assert server.tokens == ["old", "new", "new"]
    assert len({(line, body) for line, _, body in server.seen}) == 1


def test_a_refused_token_is_replaced_once_a_request(server: Server) -> None:
    repeating, _ = a_repeating(server, "a", "b", "c", "d")
    server.answer = only("none")
    assert repeating.request("PUT", "/a", WITH_ID, BODY).status_code == 401
    assert server.tokens == ["a", "b"]


def test_a_login_without_another_token_is_refused(server: Server) -> None:
    repeating, _ = a_repeating(server, "only")
    server.answer = only("none")
    assert repeating.request("PUT", "/a", WITH_ID, BODY).status_code == 401
    assert server.tokens == ["only"]


def test_an_idle_connection_that_was_closed_is_replaced(server: Server) -> None:
    closed = threading.Event()

    def answer(asked: Handler) -> None:
        asked.fine()
        asked.wfile.flush()
        asked.connection.shutdown(2)
        asked.close_connection = True
        closed.set()

    repeating, login = a_repeating(server)
    for _ in range(2):
        server.answer = answer
        assert repeating.request("POST", "/a", WITH_ID, BODY).status_code == 200
        assert closed.wait(60)
        closed.clear()
        server.answer = Handler.fine
        assert repeating.request("POST", "/a", WITH_ID, BODY).status_code == 200
    assert (len(server.seen), login.looks) == (4, 1)


def silent(asked: Handler) -> None:
    """Do not answer before the test is over."""
    asked.server.released.wait(60)
    asked.close_connection = True


def hang_up(asked: Handler) -> None:
    """Close without an answer."""
    asked.connection.shutdown(2)
    asked.close_connection = True


def cut_off(asked: Handler) -> None:
    """Close within the answer."""
    asked.send_response(200)
    asked.send_header("Content-Length", "100")
    asked.end_headers()
    asked.wfile.write(b"{")
    asked.wfile.flush()
    hang_up(asked)


@pytest.mark.parametrize(
    ("answer", "error", "timeout"),
    [
        (silent, ksa.ConnectTimeout, 0.2),
        (hang_up, ksa.ConnectFailure, 60),
        (cut_off, ksa.UnknownConnectionError, 60),
    ],
)
def test_a_lost_answer_is_an_error_and_nothing_is_repeated(
    server: Server, answer: Callable[[Handler], None], error: type[Exception], timeout: float
) -> None:
    repeating, login = a_repeating(server, session={"timeout": timeout})
    client = an_adapter(Login(server.url, "token"), {"timeout": timeout})
    server.answer = answer
    _fails_the_same(repeating, client, error)
    assert len(server.seen) == 2, "one each"
    assert login.looks == 1


def test_a_refused_connection(server: Server) -> None:
    repeating, login = a_repeating(server, session={"timeout": 60})
    client = an_adapter(Login(server.url, "token"), {"timeout": 60})
    server.answer = lambda asked: (asked.fine(), hang_up(asked))[0]
    repeating.request("GET", "/a", WITH_ID)
    server.close()
    _fails_the_same(repeating, client, ksa.ConnectFailure)
    assert login.looks == 1


def test_tls_that_fails_later(tmp_path: Path) -> None:
    """Those who trusted one certificate are not content with another one."""
    server = Server()
    server.scheme = "https"
    plain = server.socket
    server.socket = _tls(plain, tmp_path / "one")
    session = {"verify": str(tmp_path / "one" / "ca.pem"), "timeout": 60}
    try:
        server.answer = lambda asked: (asked.fine(), hang_up(asked))[0]
        repeating, login = a_repeating(server, session=session)
        repeating.request("GET", "/a", WITH_ID)
        assert (len(server.seen), login.looks) == (1, 1)
        server.socket = _tls(server.socket, tmp_path / "other")
        _fails_the_same(repeating, an_adapter(Login(server.url, "token"), session), ksa.SSLError)
        assert (len(server.seen), login.looks) == (1, 1)
    finally:
        server.close()


def _tls(plain: Any, folder: Path) -> ssl.SSLSocket:
    folder.mkdir()
    context = server_context(folder)
    return context.wrap_socket(plain, server_side=True)


def _fails_the_same(repeating: Repeating, client: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as expected:
        through_keystoneauth(client, "PUT", "/a", WITH_ID, BODY)
    with pytest.raises(error) as found:
        repeating.request("PUT", "/a", WITH_ID, BODY)
    assert type(found.value) is type(expected.value)
    assert _without_addresses(str(found.value)) == _without_addresses(str(expected.value))


def _without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "", text)


def test_a_header_with_a_line_break_is_not_sent(server: Server) -> None:
    repeating, _ = a_repeating(server)
    with pytest.raises(ksa.UnknownConnectionError):
        repeating.request("GET", "/a", {"X-OpenStack-Request-ID": "a\r\nX-Other: b"})
    assert not server.seen


def test_a_redirect_is_followed(server: Server) -> None:
    repeating, login = a_repeating(server)

    def answer(asked: Handler) -> None:
        if asked.path.endswith("/there"):
            asked.fine()
        else:
            asked.say(307, Location=f"{server.url}/there")

    server.answer = answer
    for _ in range(2):
        assert repeating.request("PUT", "/a", WITH_ID, BODY).status_code == 200
    assert [line.split()[1] for line, _, _ in server.seen] == [
        *("/placement/a", "/placement/a", "/placement/there"),
        *("/placement/a", "/placement/there"),
    ]
    assert {body for _, _, body in server.seen} == {server.seen[0][2]}
    assert login.looks == 3


def test_cookies_are_sent_back(server: Server) -> None:
    repeating, _ = a_repeating(server)
    server.answer = lambda asked: asked.say(200, Set_Cookie="worker=1")
    for _ in range(3):
        repeating.request("GET", "/a", WITH_ID)
    assert [dict(headers).get("Cookie") for _, headers, _ in server.seen] == [
        None,
        "worker=1",
        "worker=1",
    ]


class Once(Login):
    """A login that works once."""

    def get_token(self, session: Any, **_: Any) -> str:
        if not self.tokens:
            raise ksa.ConnectFailure("Keystone is away")
        return self.tokens.pop()


def test_an_answer_counts_though_the_login_fails_after_it(server: Server) -> None:
    repeating = Repeating(an_adapter(Once(server.url, "token")), "placement")
    assert repeating.request("PUT", "/a", WITH_ID, BODY).status_code == 200
    with pytest.raises(ksa.ConnectFailure):
        repeating.request("PUT", "/a", WITH_ID, BODY)


def test_no_login_is_needed_where_the_endpoint_is_known(server: Server) -> None:
    made = ksa_session.Session(session=direct.session())
    client = ksa_adapter.Adapter(made, endpoint_override=server.url)
    repeating = Repeating(client, "placement")
    for _ in range(2):
        assert repeating.request("GET", "/a", WITH_ID).status_code == 200
    assert server.tokens == [None, None]


class Certified(Login):
    """A login that has more to say of the connection."""

    def get_connection_params(self, session: Any, **_: Any) -> dict[str, Any]:
        return {"verify": True}


def a_hook(answer: requests.Response, **_: Any) -> None:
    """Look at an answer."""


@pytest.mark.parametrize(
    "unusual",
    [
        {"connect_retries": 1},
        {"status_code_retries": 1},
        {"logger": logging.getLogger("own")},
        {"global_request_id": "req-1"},
        {"allow": {"allow_deprecated": False}},
    ],
)
def test_what_is_unusual_passes_through_keystoneauth(
    server: Server, unusual: dict[str, Any]
) -> None:
    repeating, login = a_repeating(server, **unusual)
    repeating.request("GET", "/a", WITH_ID)
    assert login.looks == 2


def test_unusual_sessions_pass_through_keystoneauth(server: Server) -> None:
    class Session(ksa_session.Session):
        """A session that may do other things."""

    hooked = direct.session()
    hooked.hooks["response"].append(a_hook)
    basic = direct.session()
    basic.auth = ("user", "password")
    for made in (
        Session(auth=Login(server.url, "token"), session=direct.session()),
        ksa_session.Session(auth=Login(server.url, "token"), session=hooked),
        ksa_session.Session(auth=Login(server.url, "token"), session=basic),
        ksa_session.Session(auth=Certified(server.url, "token"), session=direct.session()),
    ):
        repeating = Repeating(ksa_adapter.Adapter(made, service_type="placement"), "placement")
        for _ in range(2):
            assert repeating.request("GET", "/a", WITH_ID).status_code == 200
        assert isinstance(made.auth, Login)
        assert made.auth.looks == 2


def test_debugging_shows_requests_without_their_tokens(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    repeating, _ = a_repeating(server, "secret-token")
    with caplog.at_level(logging.DEBUG, "keystoneauth.session"):
        repeating.request("PUT", "/shown", WITH_ID, BODY)
    assert "/placement/shown" in caplog.text
    assert "secret-token" not in caplog.text


def test_its_parts_show_no_token(server: Server) -> None:
    repeating, _ = a_repeating(server, "secret-token")
    assert "secret-token" not in repr(vars(repeating))

"""What stands before Keystone: what it hands on, and what it says when Keystone fails."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable
from typing import Any

import pytest

from identity.guard import Guard

SECRET = "what an exception says"


class Application:
    """Notes what it is asked and answers, or fails."""

    def __init__(self, fails: bool = False) -> None:
        self.bodies: list[bytes] = []
        self._fails = fails

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.bodies.append(environ["wsgi.input"].read())
        if self._fails:
            environ["openstack.request_id"] = "req-inner"
            raise RuntimeError(SECRET)
        start_response("200 OK", [])
        return [b"fine"]


def ask(app: Application, body: bytes = b"", **given: str) -> tuple[str, dict[str, str], bytes]:
    """Return status, headers and body of an answer."""
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/v3/users",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "CONTENT_LENGTH": str(len(body)),
        **given,
    }
    started: list[tuple[str, dict[str, str]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        started.append((status, dict(headers)))

    said = b"".join(Guard(app)(environ, start_response))  # type: ignore[arg-type]
    return *started[0], said


def test_a_sound_body_is_handed_on() -> None:
    app = Application()
    assert ask(app, b'{"user": {}}')[::2] == ("200 OK", b"fine")
    assert app.bodies == [b'{"user": {}}']


def test_a_refused_request_does_not_reach_keystone() -> None:
    app = Application()
    status, headers, said = ask(app, b"[" * 65 + b"]" * 65)
    assert status == "400 Bad Request"
    assert headers["Content-Length"] == str(len(said))
    message = "Malformed request body: it is nested more than 64 levels deep."
    assert json.loads(said) == {"error": {"code": 400, "title": "Bad Request", "message": message}}
    assert app.bodies == []


@pytest.mark.parametrize("body", [b"a=b", b"\xff", b"[" * 90])
def test_what_is_not_json_by_its_type_is_handed_on(body: bytes) -> None:
    app = Application()
    assert ask(app, body, CONTENT_TYPE="text/plain")[0] == "200 OK"
    assert app.bodies == [body]


def test_forms_are_handed_on() -> None:
    app = Application()
    assert ask(app, b"a=b", PATH_INFO="/v3/OS-OAUTH2/token")[0] == "200 OK"
    assert app.bodies == [b"a=b"]


def test_a_failure_inside_is_an_answer_in_json_that_leads_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        status, headers, said = ask(Application(fails=True))
    assert status == "500 Internal Server Error"
    assert headers["Content-Type"] == "application/json"
    assert headers["x-openstack-request-id"] == "req-inner"
    error = json.loads(said)["error"]
    assert (error["code"], error["title"]) == (500, "Internal Server Error")
    assert "req-inner" in error["message"]
    assert SECRET.encode() not in said
    assert "req-inner" in caplog.text
    assert SECRET in caplog.text


def test_head_has_no_body() -> None:
    status, headers, said = ask(
        Application(), REQUEST_METHOD="HEAD", QUERY_STRING="limit=x", CONTENT_LENGTH=""
    )
    assert (status, said) == ("400 Bad Request", b"")
    assert int(headers["Content-Length"]) > 0


@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ("req-0d3f9a52-6c1e-4b0a-9d3b-5c1f6f1e2a3b", True),
        ("req-\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9-6c1e-4b0a-9d3b-5c1f6f1e2a3b", False),
        ("req-________-____-____-____-____________", False),
        ("x", False),
    ],
)
def test_a_callers_request_id_is_one_or_is_dropped(given: str, passes: bool) -> None:
    seen: list[str | None] = []

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen.append(environ.get("HTTP_X_OPENSTACK_REQUEST_ID"))
        start_response("200 OK", [])
        return []

    ask(app, HTTP_X_OPENSTACK_REQUEST_ID=given)  # type: ignore[arg-type]
    assert seen == [given if passes else None]

"""requests over a WSGI application of the same process."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
from falcon.stream import BoundedStream

from dashboard.cloud import Data
from launcher.embedded.inprocess import WsgiAdapter


class Echo:
    """Answers with what it was asked."""

    def __init__(self) -> None:
        self.closed = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        said = {
            "method": environ["REQUEST_METHOD"],
            "script": environ["SCRIPT_NAME"],
            "path": environ["PATH_INFO"],
            "query": environ["QUERY_STRING"],
            "type": environ.get("CONTENT_TYPE"),
            "token": environ.get("HTTP_X_AUTH_TOKEN"),
            "body": environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode(),
        }
        start_response("409 Conflict", [("Content-Type", "application/json"), ("X-A", "b")])
        return Chunks(self, [json.dumps(said).encode()])


class Chunks(list[bytes]):
    """A body that must be closed."""

    def __init__(self, owner: Echo, chunks: list[bytes]) -> None:
        super().__init__(chunks)
        self._owner = owner

    def close(self) -> None:
        self._owner.closed += 1


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def session(echo: Echo) -> requests.Session:
    made = requests.Session()
    made.mount("http://cloud:80/placement", WsgiAdapter(echo, "/placement"))  # type: ignore[arg-type]
    return made


def test_a_request_arrives_as_it_was_sent(session: requests.Session, echo: Echo) -> None:
    answer = session.put(
        "http://cloud:80/placement/allocations/a%20b?x=1&y=%2F",
        json={"k": "ü"},
        headers={"X-Auth-Token": "t"},
        timeout=5,
    )
    assert answer.json() == {
        "method": "PUT",
        "script": "/placement",
        "path": "/allocations/a b",
        "query": "x=1&y=%2F",
        "type": "application/json",
        "token": "t",
        "body": '{"k": "\\u00fc"}',
    }
    assert echo.closed == 1


def test_the_answer_is_requests_own(session: requests.Session) -> None:
    answer = session.get("http://cloud:80/placement/", timeout=5)
    assert (answer.status_code, answer.reason, answer.ok) == (409, "Conflict", False)
    assert answer.headers["x-a"] == "b"
    assert answer.request.method == "GET"
    with pytest.raises(requests.HTTPError):
        answer.raise_for_status()


@pytest.mark.parametrize("size", [1, 3, 4, 7, 100])
def test_a_body_of_pieces_is_read_in_others(echo: Echo, size: int) -> None:
    """Falcon takes what was asked for as read, whatever a stream returned."""

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        stream = BoundedStream(environ["wsgi.input"], int(environ["CONTENT_LENGTH"]))
        start_response("200 OK", [])
        return list(iter(lambda: stream.read(size), b""))

    made = requests.Session()
    made.mount("http://cloud", WsgiAdapter(app, ""))  # type: ignore[arg-type]
    sent = Data(10, iter([b"abc", b"defgh", b"ij"]))
    assert made.put("http://cloud/file", data=sent).content == b"abcdefghij"

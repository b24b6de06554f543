"""HAProxy's file repeats the creates that a machine closed without an answer."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional import backends, proxies

BODY = b'{"server": {"name": "web-1"}}'
HEAD = b"POST /compute/v2.1/servers HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(BODY)


class Machine(http.server.ThreadingHTTPServer):
    """Stands for an API of one machine: is healthy, and answers creates or closes."""

    daemon_threads = True

    def __init__(self, answers: bool) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.seen = threading.Event()
        """A create's head came here."""
        self.keys: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Machine

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.server.seen.set()
        self.server.keys.append(self.headers["Idempotency-Key"])
        read = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.server.answers:
            self.close_connection = True
            return
        self.send_response(202)
        self.send_header("Content-Length", str(len(read)))
        self.end_headers()
        self.wfile.write(read)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextlib.contextmanager
def machine(answers: bool) -> Iterator[Machine]:
    with Machine(answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("parts", [1, 2], ids=["at once", "body after the head"])
def test_a_create_that_one_machine_closed_is_made_by_the_other(tmp_path: Path, parts: int) -> None:
    """As often as there are machines, so that each is asked."""
    port = backends.free_port()
    with machine(answers=False) as closes, machine(answers=True) as answers:
        both = [(one.server_port, one.server_port) for one in (closes, answers)]
        behind = proxies.Behind(tmp_path, (both[0], both[1]), (both[0], both[1]))
        with proxies.behind_haproxy(behind, port):
            answered = [_create(port, closes.seen, parts) for _ in both]
    assert all(one.startswith(b"HTTP/1.1 202") and one.endswith(BODY) for one in answered), (
        answered
    )
    assert len(set(answers.keys)) == len(both)
    assert closes.keys
    assert set(closes.keys) <= set(answers.keys)


def _create(port: int, seen: threading.Event, parts: int) -> bytes:
    """The answer to a create; its body follows when a machine has seen the head, or had the time
    to see it."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(HEAD if parts == 2 else HEAD + BODY)
        if parts == 2:
            seen.wait(0.5)
            connection.sendall(BODY)
        answer = b""
        while not answer.endswith(BODY):
            data = connection.recv(65536)
            if not data:
                break
            answer += data
        return answer

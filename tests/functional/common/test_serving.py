"""The worker of all APIs: slow clients cost others nothing, whole requests are answered."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import pytest

from common.process.child import ROOT, die_with_parent
from tests.functional.common.served import THREADS, Worker
from tests.functional.waiting import eventually

CONNECTIONS = 40
HEAD = b"POST /a HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n"
LARGE = b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n"


@dataclass
class Served:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int

    def connect(self, first: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        made.sendall(first)
        return made

    def ask(self, path: str = "/", body: bytes | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET" if body is None else "POST", path, body)
            return json.loads(connection.getresponse().read())


def rest_of(connection: socket.socket) -> bytes:
    """Return what comes until the server closes; a reset is a close."""
    received = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65536):
            received += data
    return bytes(received)


@pytest.fixture
def served() -> Iterator[Served]:
    with running(None) as found:
        yield found


@contextlib.contextmanager
def running(output: IO[bytes] | None, ends: frozenset[int] = frozenset({0})) -> Iterator[Served]:
    """Run the server; its log is written to `output`; its exit status is one of `ends`."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    command = [
        *(sys.executable, "-m", "gunicorn", "tests.functional.common.served:application"),
        *("--bind", f"fd://{listener.fileno()}", "--workers", "1", "--threads", str(THREADS)),
        *("--worker-class", "tests.functional.common.served.Worker", "--keep-alive", "60"),
        *("--worker-connections", str(CONNECTIONS), "--no-control-socket"),
    ]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=output,
        stderr=output,
        pass_fds=(listener.fileno(),),
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509
    )
    found = Served(process, listener.getsockname()[1])
    try:
        eventually(lambda: found.ask()["path"] == "/")
        yield found
    finally:
        process.terminate()
        assert process.wait(60) in ends
        listener.close()


@pytest.mark.parametrize(
    "words",
    [b"", b"GET / HTTP/1.1\r\nHost: te", HEAD + b"he"],
    ids=["silent", "half a head", "half a body"],
)
def test_clients_that_stop_keep_nobody_from_being_answered(served: Served, words: bytes) -> None:
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(served.connect(words)) for _ in range(THREADS * 5)]
        assert served.ask("/other")["path"] == "/other"
        for each in crowd:  # and they lose their connections
            assert not rest_of(each).endswith(b"}")
        assert served.ask("/other")["path"] == "/other"


def test_answers_that_nobody_reads_keep_no_thread(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(served.connect(LARGE)) for _ in range(THREADS * 5)]
        assert served.ask("/other")["path"] == "/other"
        time.sleep(3 * Worker.answer_seconds)  # what they get, and don't use
        for each in crowd:
            assert len(rest_of(each)) < 20_000_000


def test_a_late_request_is_answered_as_late(served: Served) -> None:
    with served.connect(HEAD + b"he") as connection:
        assert rest_of(connection).startswith(b"HTTP/1.1 408 ")


def test_bytes_that_trickle_win_no_time(served: Served) -> None:
    with served.connect(HEAD[:10]) as connection:
        began = time.monotonic()
        connection.settimeout(0.1)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while not answer:
                connection.sendall(b"a")
                with contextlib.suppress(TimeoutError):
                    answer = connection.recv(100)
                assert time.monotonic() - began < 15
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_one_address_holds_half_of_the_connections(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(served.connect(HEAD)) for _ in range(CONNECTIONS)]
        first, newest = crowd[0], crowd[-1]
        assert served.ask()["peer"] == "127.0.0.1"
        # The longest waiting one went, not the newest.
        assert rest_of(first) == b""
        newest.sendall(b"hello")
        assert b'"hello"' in newest.recv(65536)
        # Another address has room.
        other = socket.create_connection(
            ("127.0.0.1", served.port), timeout=60, source_address=("127.0.0.2", 0)
        )
        stack.enter_context(other)
        other.sendall(HEAD + b"hello")
        assert b"127.0.0.2" in other.recv(65536)


def test_requests_follow_each_other_on_one_connection(served: Served) -> None:
    chunks = b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks += b"5\r\nhello\r\n0\r\n\r\n"
    last = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with served.connect(HEAD + b"12345" + chunks + HEAD + b"67890" + last) as connection:
        answer = rest_of(connection)
    assert answer.count(b"HTTP/1.1 200 OK") == 4
    positions = [answer.index(text) for text in (b'"12345"', b'"hello"', b'"67890"', b"/last")]
    assert positions == sorted(positions)


def test_a_large_answer_arrives_whole(served: Served) -> None:
    with served.connect(LARGE + LARGE.replace(b"Host", b"Connection: close\r\nHost")) as asked:
        assert rest_of(asked).count(b"x") == 40_000_000


def test_continue_is_said_to_who_waits_for_it(served: Served) -> None:
    with served.connect(HEAD.replace(b"Host", b"Expect: 100-continue\r\nHost")) as connection:
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"hello")
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b'"hello"' in answer


def test_no_request_hides_behind_one_whose_end_is_not_sure(served: Served) -> None:
    hidden = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
    for head in (
        HEAD.replace(b"Host", b"Transfer-Encoding: chunked\r\nHost") + b"0\r\n\r\n",
        HEAD.replace(b"Length: 5", b"Length: +5"),
        HEAD.replace(b"Length: 5", b"Length: 5\r\nContent-Length: 0"),
    ):
        with served.connect(head + hidden) as connection:
            answer = rest_of(connection)
        assert answer.count(b"HTTP/1.1") == 1
        assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("coding", [b"gzip", b"chunked, nonsense", b"identity, x"])
def test_a_coding_that_nobody_knows_is_the_clients_mistake(served: Served, coding: bytes) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: " + coding + b"\r\n\r\n"
    with served.connect(head) as connection:
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert answer.count(b"HTTP/1.1") == 1


def test_headers_without_end_are_refused(served: Served) -> None:
    with served.connect(b"GET / HTTP/1.1\r\nA: " + b"a" * 70_000) as connection:
        assert rest_of(connection).startswith(b"HTTP/1.1 431 ")


def test_the_end_waits_for_no_idle_connection(served: Served) -> None:
    with served.connect(), served.connect(HEAD) as half:
        served.ask()  # connections are taken in order: both are
        served.process.send_signal(signal.SIGTERM)
        assert rest_of(half).startswith(b"HTTP/1.1 408 ")
        assert served.process.wait(60) == 0


def test_a_log_without_room_stops_nothing() -> None:
    # Python ends with 120 where it can't write what is left for standard output.
    ends = frozenset({0, 120})
    with Path("/dev/full").open("wb") as full, running(full, ends) as server:
        for _ in range(5):
            assert server.ask("/logged")["path"] == "/logged"
        with server.connect(b"no request\r\n\r\n") as connection:  # which gunicorn logs
            assert rest_of(connection).startswith(b"HTTP/1.1 400 ")
        assert server.ask("/logged")["path"] == "/logged"


def test_what_clients_send_writes_no_lines_of_the_log(tmp_path: Path) -> None:
    forged = b"2026-01-01 00:00:00.000 1 INFO micronova.x [- -] forged"
    with (tmp_path / "log").open("wb") as written, running(written) as server:
        server.ask("/%0d%0a" + quote(forged) + "%1b[2J%7f%c2%9b%e2%80%a8%e2%80%ae")
        with server.connect(b"GET /\x1b[2J\x0b\xc2\x85 HTTP/9.\xe2\x80\xa8\r\n\r\n") as asked:
            assert rest_of(asked).startswith(b"HTTP/1.1 400 ")  # gunicorn logs it
    lines = (tmp_path / "log").read_bytes()
    assert b"forged" in lines
    assert b"Invalid HTTP Version" in lines or b"Invalid request from" in lines
    assert not [line for line in lines.split(b"\n") if line.startswith(forged)]
    assert all(line.isprintable() for line in lines.decode().split("\n"))

"""What is asked of guests over the network: one connection, one address, an end in any case."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from common.resources.health_checks import Location
from compute.observed import probes
from compute.observed.probes import Refused

HERE = "127.0.0.1"


class Guest:
    """Takes connections, one at a time, and answers each by a function."""

    def __init__(self) -> None:
        self._listener = socket.create_server((HERE, 0))
        self.port = int(self._listener.getsockname()[1])
        self.asked: list[bytes] = []
        self.answer: Callable[[socket.socket], None] = lambda _: None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self.asked.append(connection.recv(4096))
                    self.answer(connection)
                except OSError:
                    continue

    def says(self, *parts: bytes) -> None:
        def answer(connection: socket.socket) -> None:
            for part in parts:
                connection.sendall(part)

        self.answer = answer

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(60)


@pytest.fixture
def guest() -> Iterator[Guest]:
    made = Guest()
    yield made
    made.close()


def ask(guest: Guest, target: str = "/health", *, secure: bool = False, contains: str = "") -> str:
    where = Location(secure, guest.port, target)
    return probes.http(HERE, where, "web-1", contains=contains, seconds=5)


def test_a_guest_that_is_well(guest: Guest) -> None:
    guest.says(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"status: OK\n")
    assert ask(guest) == ""
    assert ask(guest, contains="status: OK") == ""
    assert ask(guest, contains="ready") == f"Port {guest.port} answers without 'ready'."
    lines = guest.asked[0].decode().split("\r\n")
    assert lines[:2] == ["GET /health HTTP/1.0", "Host: web-1"]


def test_a_name_is_no_other_header(guest: Guest) -> None:
    guest.says(b"HTTP/1.1 200 OK\r\n\r\n")
    where = Location(False, guest.port, "/")
    assert probes.http(HERE, where, "web\r\nX-Evil: 1\u00e9", seconds=5) == ""
    lines = guest.asked[0].decode().split("\r\n")
    assert lines == ["GET / HTTP/1.0", "Host: web--X-Evil--1-", "Connection: close", "", ""]
    probes.tcp(HERE, guest.port)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 503 No\r\n\r\n", "answers with status 503."),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", "answers with status 302."),
        (b"HTTP/1.1 99 \r\n\r\n", "answers with status 99."),
        (b"SSH-2.0-OpenSSH\r\n", "does not answer as an HTTP server does."),
        (b"", "does not answer as an HTTP server does."),
        (b"HTTP/1.1 abc\r\n\r\n", "does not answer as an HTTP server does."),
    ],
)
def test_a_guest_that_is_not(guest: Guest, answer: bytes, why: str) -> None:
    guest.says(answer)
    assert ask(guest) == f"Port {guest.port} {why}"
    # Nothing was followed.
    assert len(guest.asked) == 1


def test_one_that_answers_without_an_end(guest: Guest) -> None:
    """It is read no further than it may."""

    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(65_536 * b"x")

    guest.answer = flood
    assert ask(guest) == ""


def test_one_that_answers_too_slowly(guest: Guest) -> None:
    over = threading.Event()

    def drip(connection: socket.socket) -> None:
        while not over.wait(0.02):
            connection.sendall(b"x")

    guest.answer = drip
    where = Location(False, guest.port, "/")
    with pytest.raises(Refused, match="does not answer: no answer in time"):
        probes.http(HERE, where, "web-1", seconds=0.3)
    over.set()


def test_one_that_takes_no_connection(guest: Guest) -> None:
    guest.close()
    with pytest.raises(Refused, match=f"Port {guest.port} takes no connection: "):
        probes.tcp(HERE, guest.port)
    with pytest.raises(Refused, match="takes no connection"):
        ask(guest)


def test_one_that_speaks_no_tls(guest: Guest) -> None:
    guest.says(b"HTTP/1.1 200 OK\r\n\r\n")
    with pytest.raises(Refused, match="does not answer"):
        ask(guest, secure=True)

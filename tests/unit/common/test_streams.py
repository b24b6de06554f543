"""Connections that one thread reads while another one writes."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import streams
from simulator.http.certificate import server_context

TRIES = 100
LARGE = 4 << 20


class Server:
    """Sends back what comes, in a thread for each connection."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                made, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(made,), daemon=True).start()

    def _answer(self, made: socket.socket) -> None:
        # A client that distrusts it leaves.
        with (
            contextlib.suppress(OSError),
            self._context.wrap_socket(made, server_side=True) as connection,
        ):
            while asked := connection.recv(65536):
                connection.sendall(asked)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    made = Server(server_context(folder))
    yield made
    made.close()


@pytest.fixture(scope="module")
def context(server: Server, folder: Path) -> ssl.SSLContext:
    return streams.tls(str(folder / "ca.pem"))


def _connect(server: Server, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", server.port))
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def _read_beside(connection: socket.socket, wanted: int) -> tuple[threading.Thread, bytearray]:
    found = bytearray()

    def read() -> None:
        while len(found) < wanted and (more := connection.recv(65536)):
            found.extend(more)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread, found


def test_a_first_write_beside_a_read_arrives(server: Server, context: ssl.SSLContext) -> None:
    """The reader takes the server's session tickets in that moment."""
    for _ in range(TRIES):
        with _connect(server, context) as connection:
            assert connection.version() == "TLSv1.3"
            thread, found = _read_beside(connection, 3)
            connection.sendall(b"GET")
            thread.join(60)
            assert found == b"GET"


def test_much_passes_both_ways_at_once(server: Server, context: ssl.SSLContext) -> None:
    sent = bytes(range(256)) * (LARGE // 256)
    with _connect(server, context) as connection:
        thread, found = _read_beside(connection, len(sent))
        connection.sendall(sent)
        thread.join(60)
    assert found == sent


def test_a_timeout_is_an_oserror(server: Server, context: ssl.SSLContext) -> None:
    with _connect(server, context) as connection:
        connection.settimeout(0.01)
        with pytest.raises(TimeoutError):
            connection.recv()
        assert connection.gettimeout() == 0.01


def test_a_certificate_is_verified(server: Server) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        _connect(server, streams.tls())
    with _connect(server, streams.tls(verified=False)) as connection:
        connection.sendall(b"x")
        assert connection.recv(1) == b"x"

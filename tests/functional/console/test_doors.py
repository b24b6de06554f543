"""Strangers at the console proxy's port: few threads, for a short time, and room for others."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("websockets")

from common import config, rpc
from console import config as console_config
from console import doors
from console.service import ConsoleService
from simulator.http.certificate import server_context
from tests.functional.waiting import eventually

GET = b"GET /vnc_auto.html HTTP/1.1\r\nHost: console.test\r\n\r\n"
#: of an opened connection: its own, the library's that reads, another that pings
EACH = 3


@dataclass(frozen=True)
class Running:
    """A proxy whose conductor doesn't answer."""

    port: int
    tls: ssl.SSLContext | None = None

    def connect(self, first: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
        where = ("127.0.0.1", self.port)
        made = socket.create_connection(where, timeout=60, source_address=(address, 0))
        made.sendall(first)
        return made

    def page(self, address: str = "127.0.0.1") -> bytes:
        """Return the answer to a request for the page."""
        with contextlib.ExitStack() as stack:
            made = stack.enter_context(self.connect(address=address))
            if self.tls is not None:
                encrypted = self.tls.wrap_socket(made, server_hostname="127.0.0.1")
                made = stack.enter_context(encrypted)
            made.sendall(GET)
            return rest_of(made)


def rest_of(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes; a reset is a close."""
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            received += data
    return bytes(received)


@pytest.fixture(params=["plain", "tls"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    conf = config.load([rpc.register, console_config.register])
    conf.set_override("transport_url", f"micronova-local://{uuid.uuid4().hex}")
    conf.set_override("rpc_timeout_seconds", 2, group="rpc")
    tls = None
    if request.param == "tls":
        server_context(tmp_path, "127.0.0.1")
        conf.set_override("cert_file", str(tmp_path / "ca.pem"), group="console")
        conf.set_override("key_file", str(tmp_path / "tls-key.pem"), group="console")
        tls = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    port = listener.getsockname()[1]
    bus = rpc.transport(conf)
    service = ConsoleService(conf, bus, listener, open_seconds=2.0)
    service.start()
    try:
        yield Running(port, tls)
    finally:
        service.stop()
        bus.cleanup()


def test_a_page_is_answered(running: Running) -> None:
    assert running.page().startswith(b"HTTP/1.1 200 OK")


def test_silent_connections_are_few_and_end(running: Running) -> None:
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        crowd, most = [], 0
        for _ in range(4 * doors.MOST):
            crowd.append(stack.enter_context(running.connect()))
            most = max(most, threading.active_count())
        # Those of one address are half; some are about to end.
        assert most - before <= EACH * doors.MOST
        assert running.page("127.0.0.2").startswith(b"HTTP/1.1 200 OK")
        assert running.page().startswith(b"HTTP/1.1 200 OK")
        for each in crowd:
            assert rest_of(each) == b""
        eventually(lambda: threading.active_count() <= before, 10)


def test_bytes_that_trickle_win_no_time(running: Running) -> None:
    first, more = (GET[:10], b"a") if running.tls is None else (b"\x16\x03\x01\x02\x00\x01", b"\0")
    with running.connect(first) as connection, contextlib.suppress(ConnectionError):
        connection.settimeout(0.3)
        for _ in range(60):
            connection.sendall(more)
            with contextlib.suppress(TimeoutError):
                assert connection.recv(1000) == b""
                return
        pytest.fail("it is still open")


@pytest.mark.parametrize("running", ["plain"], indirect=True)
def test_strangers_with_tokens_are_counted_too(running: Running) -> None:
    """They are kept while a conductor is asked, and then closed; others have room."""
    upgrade = (
        b"GET /?token=x HTTP/1.1\r\nHost: console.test\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(running.connect(upgrade)) for _ in range(2 * doors.MOST)]
        assert running.page("127.0.0.2").startswith(b"HTTP/1.1 200 OK")
        assert threading.active_count() - before <= EACH * doors.MOST
        for each in crowd:
            rest_of(each)
        assert running.page().startswith(b"HTTP/1.1 200 OK")

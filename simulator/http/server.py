"""An HTTP/1.1 server: one thread accepts, one thread per connection answers.

Frameworks don't allow what is needed here: any reason phrase, status 595 and 596, connections cut
without an answer, hundreds of hanging requests that don't block the others.
"""

from __future__ import annotations

import io
import logging
import selectors
import socket
import ssl
import threading
import traceback
from collections.abc import Callable
from typing import Any

from simulator.console.websocket import Gone, WebSocket, accept_key
from simulator.digits import is_digits
from simulator.errors import Dropped
from simulator.http.app import Request, Response, now_header

LOG = logging.getLogger(__name__)
IDLE_SECONDS = 5.0
IO_SECONDS = 120.0
MAX_LINE = 8192
MAX_HEADERS = 64
BACKLOG = 512

Answer = Callable[[Any, Request], Response]


class BadRequest(Exception):
    """The request is no valid HTTP for this server."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class _Body(io.RawIOBase):
    """A request body: reads exactly as many bytes as the request announces."""

    def __init__(self, source: io.BufferedReader, length: int) -> None:
        self._source, self.left = source, length

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return at most `size` bytes; all that is left if negative."""
        wanted = self.left if size is None or size < 0 else min(size, self.left)
        chunk = self._source.read(wanted) if wanted else b""
        self.left -= len(chunk)
        return chunk

    def drain(self) -> None:
        """Read and discard the rest of the request."""
        while self.left and self.read(65536):
            pass


class Server:
    """Listens on any number of ports; each has a token that is passed to the answerer."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._selector.register(self._wake_in, selectors.EVENT_READ, None)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, name="accept", daemon=True)

    def listen(self, host: str, port: int, token: object) -> int:
        """Open a port (0: any) and return its number."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, token)
        return int(listener.getsockname()[1])

    def start(self) -> None:
        """Begin to accept connections."""
        self._thread.start()

    def stop(self) -> None:
        """Close all ports and connections."""
        self._wake_out.send(b"x")
        self._thread.join(timeout=5)
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            _cut(connection)

    def _accept(self) -> None:
        while True:
            for key, _events in self._selector.select():
                if key.fileobj is self._wake_in:
                    self._close_listeners()
                    return
                listener: Any = key.fileobj
                try:
                    connection, _peer = listener.accept()
                except OSError:
                    continue
                threading.Thread(
                    target=self._converse, args=(connection, key.data), daemon=True
                ).start()

    def _close_listeners(self) -> None:
        for key in list(self._selector.get_map().values()):
            fileobj: Any = key.fileobj
            fileobj.close()
        self._selector.close()
        self._wake_out.close()

    def _converse(self, connection: socket.socket, token: object) -> None:
        with self._lock:
            self._connections.add(connection)
        plain = connection
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(IO_SECONDS)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                with self._lock:
                    self._connections.add(connection)
            with connection.makefile("rb") as reader:
                while self._exchange(connection, reader, token):
                    pass
        except (OSError, Dropped):
            # The peer closed the connection, or is to see it closed.
            LOG.debug("connection ended early")
        finally:
            _cut(connection)
            with self._lock:
                self._connections -= {plain, connection}

    def _exchange(
        self, connection: socket.socket, reader: io.BufferedReader, token: object
    ) -> bool:
        connection.settimeout(IDLE_SECONDS)
        line = reader.readline(MAX_LINE + 1)
        if not line:
            return False
        connection.settimeout(IO_SECONDS)
        try:
            request, body = _read_request(connection, reader, line)
        except BadRequest as error:
            connection.sendall(_head(Response(error.status, error.reason, content_type=""), False))
            return False
        response = self._safe_answer(token, request)
        body.drain()
        if response.session is not None:
            connection.settimeout(None)
            connection.sendall(_switching(request))
            _attend(response.session, WebSocket(connection, reader))
            return False
        keep = response.status < 400 and request.headers.get("connection", "").lower() != "close"
        connection.sendall(_head(response, keep) + response.body)
        return keep

    def _safe_answer(self, token: object, request: Request) -> Response:
        try:
            return self._answer(token, request)
        except Dropped:
            raise
        except Exception as error:
            LOG.exception("%r %r failed", request.method, request.target)
            text = "".join(traceback.format_exception_only(error)).strip()
            return Response(500, f"internal error of the simulator: {text}".replace("\n", " "))


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        LOG.debug("connection was closed already")
    connection.close()


def _read_request(
    connection: socket.socket, reader: io.BufferedReader, line: bytes
) -> tuple[Request, _Body]:
    parts = line.decode("latin-1").split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1"):
        raise BadRequest(400, "bad request")
    headers: dict[str, str] = {}
    for _number in range(MAX_HEADERS):
        raw = reader.readline(MAX_LINE + 1)
        if raw in (b"\r\n", b"\n", b""):
            break
        name, colon, value = raw.decode("latin-1").partition(":")
        if not colon or len(raw) > MAX_LINE:
            raise BadRequest(400, "unable to parse request header")
        headers[name.strip().lower()] = value.strip()
    else:
        raise BadRequest(400, "too many http header lines")
    if "transfer-encoding" in headers:
        raise BadRequest(501, "chunked transfer encoding not supported")
    length = headers.get("content-length", "0")
    if not is_digits(length):
        raise BadRequest(400, "invalid content length")
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = _Body(reader, int(length))
    return Request(parts[0], parts[1], headers, body, int(length)), body  # type: ignore[arg-type]


def _attend(session: Callable[[WebSocket], None], visitor: WebSocket) -> None:
    try:
        session(visitor)
    except Gone:
        LOG.debug("a visitor left")


def _switching(request: Request) -> bytes:
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: upgrade",
        f"Sec-WebSocket-Accept: {accept_key(request.headers['sec-websocket-key'])}",
        "Sec-WebSocket-Protocol: binary",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _head(response: Response, keep: bool) -> bytes:
    now = now_header()
    lines = [
        f"HTTP/1.1 {response.status} {response.reason}",
        "Cache-Control: max-age=0",
        f"Connection: {'Keep-Alive' if keep else 'close'}",
        f"Date: {now}",
        "Pragma: no-cache",
        "Server: pve-api-daemon/3.0",
        f"Content-Length: {len(response.body)}",
        *([f"Content-Type: {response.content_type}"] if response.content_type else []),
        f"Expires: {now}",
        *(f"{name}: {value}" for name, value in response.headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")

"""Streams of bytes between two ends, and the loop that passes them on."""

from __future__ import annotations

import functools
import logging
import select
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from websockets.sync.connection import Connection

T = TypeVar("T")

#: for the websocket library, which logs the headers of requests when it debugs: they hold secrets
LIBRARY_LOG = logging.getLogger("micronova.websockets")
LIBRARY_LOG.setLevel(logging.CRITICAL)


class Stream(Protocol):
    """One end; ``close`` may be called from any thread, and more than once."""

    def receive(self) -> bytes | None:
        """Return what came, never empty; None at the end."""

    def send(self, content: bytes) -> None:
        """Send it. Raises OSError at the end."""

    def close(self) -> None:
        """Close this end; who waits in ``receive`` gets None."""


class WebSocketStream:
    """A websocket as a stream: the borders of messages mean nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def receive(self) -> bytes | None:
        """See ``Stream``."""
        from websockets.exceptions import ConnectionClosed

        while True:
            try:
                content = self._connection.recv()
            except (ConnectionClosed, OSError):
                return None
            if content:
                return content.encode() if isinstance(content, str) else content

    def send(self, content: bytes) -> None:
        """See ``Stream``."""
        from websockets.exceptions import ConnectionClosed

        try:
            self._connection.send(content)
        except ConnectionClosed as error:
            raise OSError("the websocket is closed") from error

    def close(self) -> None:
        """See ``Stream``."""
        self._connection.close()


def tls(ca_file: str | None = None, *, verified: bool = True) -> ssl.SSLContext:
    """Return how a client encrypts connections that one thread reads while another one writes.

    Trusts the system's authorities where no file is given, everybody where not `verified`.
    """
    made = ssl.create_default_context(cafile=ca_file)
    made.sslsocket_class = _Duplex
    if not verified:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made


class _Duplex(ssl.SSLSocket):
    """Takes turns: OpenSSL serves one call of a connection at a time.

    A TLS 1.3 server sends its session tickets after the handshake. A first write beside the read
    that takes them would wait for more of them, and the server for that write: 2 of 100
    connections. So a call blocks only for what must come before any other.
    """

    _turn: threading.Lock

    def do_handshake(self, block: bool = False) -> None:
        """Begin the connection; nobody else uses it yet."""
        self._turn = threading.Lock()
        super().do_handshake(block)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """See ``socket``."""
        return self._call(lambda: ssl.SSLSocket.recv(self, buflen, flags), select.POLLIN)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """See ``socket``."""
        with memoryview(data) as view, view.cast("B") as left:
            sent = 0
            while sent < len(left):
                send = functools.partial(ssl.SSLSocket.send, self, left[sent:], flags)
                sent += self._call(send, select.POLLOUT)

    def _call(self, call: Callable[[], T], own: int) -> T:
        """Return what a call does, which waits for `own` beside others, and alone for the rest."""
        while True:
            with self._turn:
                seconds = self.gettimeout()
                while True:
                    self.settimeout(0)
                    try:
                        return call()
                    except ssl.SSLWantReadError:
                        needed = select.POLLIN
                    except ssl.SSLWantWriteError:
                        needed = select.POLLOUT
                    finally:
                        self.settimeout(seconds)
                    if needed == own:
                        break
                    self._wait(needed, seconds)
            self._wait(own, seconds)

    def _wait(self, event: int, seconds: float | None) -> None:
        poller = select.poll()
        poller.register(self, event)
        if not poller.poll(None if seconds is None else seconds * 1000):
            raise TimeoutError("timed out")


class Exactly:
    """Reads fixed numbers of bytes from a stream; is a stream itself for what follows."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._unread = stream, b""

    def exactly(self, count: int) -> bytes:
        """Return so many bytes. Raises OSError at the end."""
        while len(self._unread) < count:
            content = self._stream.receive()
            if content is None:
                raise OSError("the stream ended early")
            self._unread += content
        found, self._unread = self._unread[:count], self._unread[count:]
        return found

    def receive(self) -> bytes | None:
        """Return what was read too early, then what comes."""
        found, self._unread = self._unread, b""
        return found or self._stream.receive()

    def send(self, content: bytes) -> None:
        """Send it."""
        self._stream.send(content)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def relay(one: Stream, other: Stream) -> None:
    """Pass bytes both ways until either end closes; then close both."""
    back = threading.Thread(target=_pass_on, args=(other, one), name="relay", daemon=True)
    back.start()
    _pass_on(one, other)
    back.join()


def _pass_on(source: Stream, sink: Stream) -> None:
    try:
        while (content := source.receive()) is not None:
            sink.send(content)
    except OSError:
        LIBRARY_LOG.debug("a stream ended")
    finally:
        sink.close()
        source.close()

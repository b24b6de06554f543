"""Streams of bytes between two ends, and the loop that passes them on."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from websockets.sync.connection import Connection

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

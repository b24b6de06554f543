"""Reads a long body of a request from its socket, piece by piece, in a thread of its own.

`Body` is WSGI's ``wsgi.input`` of such a request: a read returns as many bytes as were asked for
unless the body ends, as a file does.
"""

from __future__ import annotations

import re
import socket
import time

from web.incoming import Framing
from web.pace import Pace

PROGRESS_BYTES = 65_536
"""After so many bytes a client's deadline is extended at first, so that a slow client times out
like a silent one; later after more (``web.pace``)."""

_RECEIVE_BYTES = 1 << 20
_LINE_BYTES = 4096
_LINE_LIMIT = 8190
_TRAILERS = 128
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?", re.ASCII)


class BodyLost(ValueError):
    """The rest of a body doesn't come: its client is gone or too slow, or it is malformed."""


class Body:
    """The body of one request; read by one thread."""

    def __init__(self, real: socket.socket, framing: Framing, seconds: float) -> None:
        """``seconds``: time for the first PROGRESS_BYTES, or the end; see ``web.pace``."""
        self._real, self._seconds = real, seconds
        self._held = bytearray(framing.received)
        self._chunked = framing.length is None
        self._left = framing.length or 0
        """Bytes of the body, or of the chunk, that were not returned yet."""
        self._waits = framing.expects_continue
        self._ended = framing.length == 0
        self._pace: Pace | None = None

    def read(self, size: int = -1) -> bytes:
        """Return the next ``size`` bytes, less at the end; -1: all. Raises BodyLost."""
        if self._waits:
            self._waits = False
            self._say_continue()
        if self._pace is None:
            self._pace = Pace(self._seconds, PROGRESS_BYTES, time.monotonic())
        else:
            self._pace.resume(time.monotonic())
        if size < 0:
            return b"".join(iter(lambda: self._next(_RECEIVE_BYTES), b""))
        read = self._next(size)
        self._pace.pause(time.monotonic())
        return read

    def _next(self, size: int) -> bytes:
        read = memoryview(bytearray(size))
        length = 0
        while not self._ended and length < size:
            if self._chunked and not self._left and not self._begin_chunk():
                break
            most = min(self._left, size - length)
            self._take(read[length : length + most])
            length += most
            self._end_of_piece()
        return bytes(read[:length])

    # --- pieces

    def _end_of_piece(self) -> None:
        if self._left:
            return
        if not self._chunked:
            self._ended = True
        elif self._line():
            raise BodyLost("A chunk is longer than it says.")

    def _begin_chunk(self) -> bool:
        """Read a chunk's size; return False at the end of the body, behind the trailers."""
        size = _CHUNK_SIZE.fullmatch(self._line())
        if size is None:
            raise BodyLost("The size of a chunk is no number.")
        self._left = int(size[1], 16)
        if self._left:
            return True
        for _ in range(_TRAILERS):
            if not self._line():
                self._ended = True
                return False
        raise BodyLost("There are too many trailers.")

    def _line(self) -> bytes:
        while (end := self._held.find(b"\r\n")) < 0:
            if len(self._held) > _LINE_LIMIT:
                raise BodyLost("The line of a chunk is too long.")
            received = memoryview(bytearray(_LINE_BYTES))
            self._held += received[: self._receive(received)]
        line = bytes(self._held[:end])
        del self._held[: end + 2]
        return line

    def _take(self, read: memoryview) -> None:
        """Fill this with bytes of the body."""
        self._left -= len(read)
        held = min(len(read), len(self._held))
        if held:
            read[:held] = self._held[:held]
            del self._held[:held]
        while held < len(read):
            held += self._receive(read[held:])

    # --- the socket

    def _receive(self, into: memoryview) -> int:
        """Return how many bytes came, one at least."""
        assert self._pace is not None
        left = self._pace.deadline - time.monotonic()
        if left <= 0:
            raise BodyLost("The client is too slow.")
        self._real.settimeout(left)
        try:
            received = self._real.recv_into(into)
        except OSError as error:
            raise BodyLost("The client is gone or too slow.") from error
        if not received:
            raise BodyLost("The client closed the connection.")
        self._pace.progressed(received, time.monotonic())
        return received

    def _say_continue(self) -> None:
        self._real.settimeout(self._seconds)
        try:
            self._real.sendall(_CONTINUE)
        except OSError as error:
            raise BodyLost("The client is gone.") from error

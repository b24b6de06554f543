"""Splits the bytes of an HTTP connection into requests, without blocking and without I/O.

This only finds the end of requests. The server's own parser decides whether they are well formed;
it gets exactly the bytes of one request. Where the two could disagree the connection takes no
further request, so that no request can be smuggled in another one's body.

A request with data of any length (PUT, ``application/octet-stream``) is complete with its head:
who answers it reads its body (``web.streaming``), and the connection takes no further request.
"""

from __future__ import annotations

import dataclasses
import re

HEAD_LIMIT = 65_536
"""The maximum size of a request line with its headers, bytes."""

BODY_LIMIT = 196_608
"""The maximum size of a body that is read, bytes. The APIs and Keystone refuse more than 114,688;
a request with a longer body is answered without it."""

_DATA_METHOD, _DATA_TYPE = b"PUT ", b"application/octet-stream"
_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"[0-9]{1,18}", re.ASCII)
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?", re.ASCII)
_CHUNK_LINE_LIMIT = 8190


@dataclasses.dataclass(frozen=True)
class Framing:
    """Where a body that was not read yet ends."""

    length: int | None
    """Bytes; None: it comes in chunks."""
    received: bytes
    """What of it, and of its chunks' framing, came with the head."""
    expects_continue: bool
    """Whether the client waits for ``100 Continue`` before it sends the body."""


@dataclasses.dataclass(frozen=True)
class Request:
    """The bytes of one request."""

    data: bytes
    last: bool
    """Whether the connection must close after the answer: the next request's start is unknown."""
    body: Framing | None = None
    """Of a request whose body is read by who answers it, ``data`` is the head."""


class HeadTooLarge(Exception):
    """A head is longer than HEAD_LIMIT."""


class Incoming:
    """Collects received bytes and returns complete requests; not thread-safe."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._searched = 0
        self._body: _Length | _Chunks | None = None
        self._last = False
        self._streamed = False
        self.expects_continue = False
        """Whether the client waits for ``100 Continue`` before it sends the body."""

    @property
    def is_empty(self) -> bool:
        """Whether no byte of a next request was received."""
        return not self._data

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._data += data

    def next(self) -> Request | None:
        """Return the next request once it is complete, else None. Raises HeadTooLarge."""
        if self._body is None and not self._find_head():
            return None
        assert self._body is not None
        if self._streamed:
            return self._with_framing(self._body)
        end = self._body.end(self._data)
        if end is None:
            return None
        last = self._last or self._body.is_unsure
        # Bytes after the last request are dropped.
        request = Request(bytes(self._data[:end]), last)
        del self._data[: len(self._data) if last else end]
        self._searched, self._body, self._last = 0, None, False
        self.expects_continue = False
        return request

    def _with_framing(self, body: _Length | _Chunks) -> Request:
        start = body.start
        length = body.length if isinstance(body, _Length) else None
        framing = Framing(length, bytes(self._data[start:]), self.expects_continue)
        request = Request(bytes(self._data[:start]), True, framing)
        self._data.clear()
        self._searched, self._body, self._last, self._streamed = 0, None, False, False
        self.expects_continue = False
        return request

    def _find_head(self) -> bool:
        if not self._searched:
            # Some clients send a line break after a body.
            stripped = len(self._data) - len(self._data.lstrip(b"\r\n"))
            del self._data[:stripped]
        found = self._data.find(_HEAD_END, max(0, self._searched - 3))
        if found < 0 and len(self._data) <= HEAD_LIMIT:
            self._searched = len(self._data)
            return False
        if found < 0 or found > HEAD_LIMIT:
            raise HeadTooLarge
        self._read_head(found)
        return True

    def _read_head(self, found: int) -> None:
        lines = bytes(self._data[:found]).split(b"\r\n")
        lengths, codings, types, kept = [], [], [], []
        for line in lines:
            name, _, value = line.partition(b":")
            name, value = name.strip().lower(), value.strip()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expects_continue = True
                continue  # it is answered here, before the server's parser sees the request
            if name == b"content-length":
                lengths.append(value)
            elif name == b"transfer-encoding":
                codings.append(value.lower())
            elif name == b"content-type":
                types.append(value.lower())
            kept.append(line)
        if self.expects_continue:
            self._data[:found] = b"\r\n".join(kept)
            found = len(b"\r\n".join(kept))
        start = found + len(_HEAD_END)
        of_any_length = lines[0].startswith(_DATA_METHOD) and types == [_DATA_TYPE]
        if not lengths and not codings:
            self._body = _Length(start, 0)
        elif codings == [b"chunked"] and not lengths:
            self._body = _Chunks(start)
            self._streamed = of_any_length
        elif not codings and len(lengths) == 1 and _LENGTH.fullmatch(lengths[0]):
            length = int(lengths[0])
            if of_any_length:
                self._body, self._streamed = _Length(start, length), True
                return
            self._last = length > BODY_LIMIT
            self._body = _Length(start, 0 if self._last else length)
        else:
            self._last = True
            self._body = _Length(start, 0)
        if not self._streamed and self._body.end(self._data) is not None:
            self.expects_continue = False


class _Length:
    """A body whose length is known."""

    is_unsure = False

    def __init__(self, start: int, length: int) -> None:
        self.start, self.length = start, length
        self._end = start + length

    def end(self, data: bytearray) -> int | None:
        return self._end if len(data) >= self._end else None


class _Chunks:
    """A body in chunks."""

    def __init__(self, start: int) -> None:
        self.start = self._at = start
        self._searched = start
        self._in_trailers = False
        self.is_unsure = False

    def end(self, data: bytearray) -> int | None:
        while not self._in_trailers:
            line_end = data.find(b"\r\n", max(self._at, self._searched - 1))
            if line_end < 0:
                self._searched = max(self._at, len(data))
                too_long = len(data) - self._at > _CHUNK_LINE_LIMIT
                return self._give_up(data) if too_long else self._unless_full(data)
            size = _CHUNK_SIZE.fullmatch(data, self._at, line_end)
            if size is None:
                return self._give_up(data)
            length = int(size[1], 16)
            if length == 0:
                self._in_trailers = True
                # The line break before the trailers ends them, where there are none.
                self._at = self._searched = line_end
                break
            self._at = self._searched = line_end + 2 + length + 2
        found = data.find(_HEAD_END, max(self._at, self._searched - 3))
        if found >= 0:
            return found + len(_HEAD_END)
        self._searched = max(self._at, len(data))
        return self._unless_full(data)

    def _unless_full(self, data: bytearray) -> int | None:
        return self._give_up(data) if len(data) - self.start > BODY_LIMIT else None

    def _give_up(self, data: bytearray) -> int:
        self.is_unsure = True
        return len(data)

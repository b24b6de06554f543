"""Connections of clients in a loop: accepted, read, written and closed in time, without threads.

Connections of one address are limited: one more closes the address's longest idle one.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import selectors
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from web.connections import LATE, TOO_MANY, Connection, Connections
from web.pace import Pace

REQUEST_SECONDS = 30.0
"""Time from a new connection, or the first byte of a request, until the request is complete."""

ANSWER_SECONDS = 30.0
"""Time for a client to read an answer, or more of a long one; see ``web.pace``."""

CLOSING_SECONDS = 2.0
"""Time for a client to read the end of an answer before the connection is closed; and for each
piece of a body that it still sends."""

DRAINING_SECONDS = 30.0
"""How long the rest of a refused body is read: many clients read no answer before all is sent."""

DRAINING_BYTES = 1 << 28
"""How much of it is read."""

TICK_SECONDS = 1.0
"""How often deadlines are looked at; a loop may do so more often."""

_RECEIVE_BYTES = 65_536
_PROGRESS_BYTES = 16_384


class Loop:
    """Handles connections; a subclass runs the selector and answers requests.

    Not thread-safe, but for ``_send_now``.
    """

    request_seconds = REQUEST_SECONDS
    answer_seconds = ANSWER_SECONDS
    draining_seconds = DRAINING_SECONDS
    poller: selectors.BaseSelector

    def _begin_with(self, most: int, share: float) -> None:
        """Hold so many connections, and this share of them of one address."""
        self._open: Connections[Connection] = Connections(most, max(1, int(most * share)))
        self._look_at = 0.0

    @property
    def _pause(self) -> float:
        """Seconds between two looks at deadlines."""
        return TICK_SECONDS

    def _pause_accepting(self) -> None:
        """Accept no connection until the next round: there are no descriptors left."""
        raise NotImplementedError

    def _next_request(self, connection: Connection) -> None:
        """Look for a whole request in what was received."""
        raise NotImplementedError

    def _wait_for_next(self, connection: Connection) -> None:
        """Wait for another request, now that one is answered."""
        raise NotImplementedError

    def _close_late(self) -> None:
        """Close connections at their deadline; answer 408 to incomplete requests."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + self._pause
        for connection in self._open.all():
            if connection.is_busy or now < connection.deadline:
                continue
            if connection.is_closing or connection.pending or connection.incoming.is_empty:
                self._close(connection)
            else:
                self._last_words(connection, LATE)
                self._close_gently(connection)

    def accept(self, listener: Any) -> None:
        """Accept a connection; close an idle one where there is no room."""
        try:
            real, client = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._close_all(self._open.longest_waiting())
                self._pause_accepting()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        real.setblocking(False)
        connection = Connection(real, client, listener.getsockname(), self.request_seconds)
        if self._open.is_full(connection.peer):
            self._close_all(self._open.longest_waiting(connection.peer))
        if self._open.is_full(connection.peer):
            self._last_words(connection, TOO_MANY)
            real.close()
            return
        self._open.add(connection)
        self._watch(connection, selectors.EVENT_READ, self._readable)

    def _watch(
        self, connection: Connection, events: int, react: Callable[[Connection], None]
    ) -> None:
        """Call `react` when one of `events` happens, instead of what was watched before."""
        if connection.watched == (events, react):
            return
        self._unwatch(connection)
        callback = functools.partial(_ignoring_file, react, connection)
        self.poller.register(connection.real, events, callback)
        connection.watched = (events, react)

    def _unwatch(self, connection: Connection) -> None:
        if connection.watched is not None:
            self.poller.unregister(connection.real)
            connection.watched = None

    def _close(self, connection: Connection) -> None:
        self._unwatch(connection)
        self._open.remove(connection)
        connection.real.close()

    def _close_all(self, connections: Iterable[Connection]) -> None:
        for connection in connections:
            self._close(connection)

    def _close_gently(self, connection: Connection) -> None:
        """Shut down writing, and let the client read the answer before the connection is closed.

        Closing a socket with unread bytes resets the connection, and the client may lose the
        answer. So the rest of a body is read, for a time.
        """
        try:
            connection.real.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)
            return
        connection.is_closing = True
        now = time.monotonic()
        connection.deadline = now + CLOSING_SECONDS
        connection.drains_until = now + self.draining_seconds
        self._watch(connection, selectors.EVENT_READ, self._discard)

    def _discard(self, connection: Connection) -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            try:
                if received := len(connection.real.recv(_RECEIVE_BYTES)):
                    self._drained(connection, received)
                    return
            except ConnectionError:
                pass  # gone, which is what is waited for
            self._close(connection)

    def _drained(self, connection: Connection, received: int) -> None:
        """Extend the deadline of a client that still sends, within the limits."""
        before = connection.drained
        connection.drained += received
        if connection.drained > DRAINING_BYTES:
            self._close(connection)
        elif connection.drained // _PROGRESS_BYTES > before // _PROGRESS_BYTES:
            later = time.monotonic() + CLOSING_SECONDS
            connection.deadline = min(later, connection.drains_until)

    def _last_words(self, connection: Connection, text: bytes) -> None:
        with contextlib.suppress(OSError):  # the client is gone already
            connection.real.send(text)

    def _readable(self, connection: Connection) -> None:
        try:
            data = connection.real.recv(_RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
            return
        if connection.incoming.is_empty:
            now = time.monotonic()
            connection.deadline = now + self.request_seconds
            connection.waits_since = now
        connection.incoming.feed(data)
        self._next_request(connection)

    def _send_now(self, connection: Connection) -> None:
        """Send what the socket takes at once; the loop sends the rest."""
        left = connection.unsent
        try:
            while left:
                left = left[connection.real.send(left) :]
            if connection.file is not None and not left:
                connection.file.send(connection.real)
                connection.file = connection.file if connection.file.left else None
        except (BlockingIOError, InterruptedError):
            pass  # the loop sends it
        except OSError:  # the client is gone
            connection.persists = False
            left, connection.file = memoryview(b""), None
        connection.unsent = left

    def _begin_sending(self, connection: Connection) -> None:
        """Send an answer; its client must read it at a least rate."""
        connection.pace = Pace(self.answer_seconds, _PROGRESS_BYTES, time.monotonic())
        connection.deadline = connection.pace.deadline
        self._flush(connection)

    def _flush(self, connection: Connection) -> None:
        if connection.pending:
            before = connection.pending
            self._send_now(connection)
            if connection.pace is not None:
                connection.pace.progressed(before - connection.pending, time.monotonic())
                connection.deadline = connection.pace.deadline
        if connection.pending:
            self._watch(connection, selectors.EVENT_WRITE, self._flush)
        elif not connection.persists:
            self._close_gently(connection)
        else:
            self._wait_for_next(connection)


def _ignoring_file(
    react: Callable[[Connection], None], connection: Connection, _file: object
) -> None:
    react(connection)

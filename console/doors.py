"""Connections that haven't proven yet that they may have a console: few, and of each address.

Each costs threads, so that strangers are limited before any is started. A browser with a valid
token, and an agent with its grant, count among the sessions instead.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from typing import Any

from web.connections import Connections, peer_of

#: connections in all, and the share of one address
MOST, PEER_SHARE = 64, 0.5
#: from the connection until its request is there, TLS included
OPEN_SECONDS = 5.0
#: a client that reads nothing for so long is gone
SEND_SECONDS = 30
#: how long a new connection waits for the threads of the connection that it replaces to end
_LEAVE_SECONDS = 1.0


class _Visitor:
    """A connection that is being opened."""

    def __init__(self, connection: socket.socket, address: Any) -> None:
        # The other descriptor may pass to TLS, which closes it when it likes.
        self.real = socket.socket(fileno=os.dup(connection.fileno()))
        self.peer = peer_of(address)
        self.is_busy = False
        self.waits_since = time.monotonic()

    def leave(self) -> None:
        """Shut the connection down, which ends its threads."""
        self.is_busy = True  # isn't chosen again
        _shut(self.real)


class Doors:
    """Counts the connections that are being opened. Threads may share it."""

    def __init__(self, most: int = MOST, share: float = PEER_SHARE) -> None:
        self._open: Connections[_Visitor] = Connections(most, max(1, int(most * share)))
        self._visitors: dict[Any, _Visitor] = {}
        self._changed = threading.Condition()

    def admit(self, connection: socket.socket, address: Any) -> bool:
        """Count a new connection, and close the longest waiting one for it.

        False: there is no room.
        """
        peer = peer_of(address)
        with self._changed:
            if self._open.is_full(peer):
                for other in self._open.longest_waiting(peer):
                    other.leave()
                    self._changed.wait_for(lambda: not self._open.is_full(peer), _LEAVE_SECONDS)
            if self._open.is_full(peer):
                return False
            visitor = _Visitor(connection, address)
            self._visitors[address] = visitor
            self._open.add(visitor)
        return True

    def is_asking(self, address: Any) -> None:
        """Keep a connection: others are asked whether it may have a console."""
        with self._changed:
            if address in self._visitors:
                self._visitors[address].is_busy = True

    def release(self, address: Any) -> None:
        """Count a connection no longer: it has ended, or has a session. May be called twice."""
        with self._changed:
            visitor = self._visitors.pop(address, None)
            if visitor is not None:
                self._open.remove(visitor)
                visitor.real.close()
                self._changed.notify_all()


class Entrance(socket.socket):
    """A listening socket that accepts whom its doors admit."""

    doors: Doors

    @classmethod
    def of(cls, listener: socket.socket, doors: Doors) -> Entrance:
        """Return one in place of a listening socket, which is of no use any more."""
        made = cls(fileno=listener.detach())
        made.doors = doors
        return made

    def accept(self) -> tuple[socket.socket, Any]:
        """Return a connection with its address; a closed one if none is admitted."""
        while True:
            connection, address = super().accept()
            seconds = struct.pack("ll", SEND_SECONDS, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
            if self.doors.admit(connection, address):
                return connection, address
            _shut(connection)
            if not select.select([self], [], [], 0)[0]:
                return connection, address
            connection.close()


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the client is gone already
        connection.shutdown(socket.SHUT_RDWR)

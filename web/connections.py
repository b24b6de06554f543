"""Clients' connections in a worker's loop, and the answers that the loop gives by itself."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from web.file_parts import FilePart
from web.incoming import Incoming
from web.pace import Pace

_REFUSAL = (
    "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    "Content-Length: {length}\r\n\r\n{text}"
)


def refusal(status: str, text: str) -> bytes:
    """Return a complete answer that closes the connection."""
    return _REFUSAL.format(status=status, length=len(text), text=text).encode("ascii")


LATE = refusal("408 Request Timeout", "The request took too long to arrive.")
TOO_LARGE = refusal("431 Request Header Fields Too Large", "The headers are too large.")
TOO_MANY = refusal("503 Service Unavailable", "Too many requests of this address at a time.")
TOO_MANY_STREAMS = refusal("503 Service Unavailable", "Too many uploads at a time.")


class Outgoing:
    """Stands in for the socket while gunicorn makes an answer: it buffers the bytes."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.file: FilePart | None = None
        """What follows the bytes."""

    def take_file(self, part: FilePart) -> None:
        """Queue a part of a file to be sent after the bytes."""
        self.file = part

    def sendall(self, data: bytes) -> None:
        """Buffer bytes of the answer."""
        self.data += data

    def send(self, data: bytes) -> int:
        """Buffer bytes of the answer; return their number."""
        self.data += data
        return len(data)

    def gettimeout(self) -> None:
        """Return None: nothing blocks here."""

    def setblocking(self, blocking: bool) -> None:
        """Do nothing: nothing blocks here."""


class Connection:
    """One client's connection. gunicorn reads `sock`, `client` and `server`."""

    def __init__(self, real: socket.socket, client: Any, server: Any, seconds: float) -> None:
        self.real = real
        self.client = client
        self.server = server
        self.peer = peer_of(client)
        self.incoming = Incoming()
        self.sock = Outgoing()
        self.unsent = memoryview(b"")
        self.file: FilePart | None = None
        """What is sent behind ``unsent``."""
        self.pace: Pace | None = None
        """That of reading the answer."""
        self.requests = 0
        self.persists = True
        """Whether another request may follow."""
        self.is_busy = False
        """Whether a thread is answering a request of it."""
        self.is_closing = False
        self.drains_until = 0.0
        """When a closing connection is closed although its client still sends."""
        self.drained = 0
        """Bytes that it has sent since it began to close."""
        self.watched: tuple[int, Callable[[Connection], None]] | None = None
        self.waits_since = time.monotonic()
        self.deadline = self.waits_since + seconds
        """When it is closed unless it makes progress; not while it is busy."""

    @property
    def pending(self) -> int:
        """Bytes that are still to be sent."""
        return len(self.unsent) + (0 if self.file is None else self.file.left)


def peer_of(client: Any) -> str:
    """Return the key by which connections are limited: an IPv4 address, an IPv6 /64 network.

    Clients of a Unix socket have no address: they share one key.
    """
    if not isinstance(client, tuple) or not client:
        return ""
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return str(client[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return str(ipaddress.ip_network((int(address), 64), strict=False))
        address = address.ipv4_mapped
    return str(address)


class Held(Protocol):
    """A connection that counts."""

    peer: str
    is_busy: bool
    """Whether it can't be closed for another one."""
    waits_since: float


HeldT = TypeVar("HeldT", bound=Held)


class Connections(Generic[HeldT]):
    """The connections of one server: at most `most`, and `of_peer` of one peer."""

    def __init__(self, most: int, of_peer: int) -> None:
        self._most, self._of_peer = most, of_peer
        self._by_peer: dict[str, dict[HeldT, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def all(self) -> list[HeldT]:
        """Return every connection."""
        return [each for connections in self._by_peer.values() for each in connections]

    def add(self, connection: HeldT) -> None:
        """Add a connection."""
        self._by_peer.setdefault(connection.peer, {})[connection] = None
        self._count += 1

    def remove(self, connection: HeldT) -> None:
        """Remove a connection; may be called twice."""
        connections = self._by_peer.get(connection.peer, {})
        if connection in connections:
            del connections[connection]
            self._count -= 1
        if not connections:
            self._by_peer.pop(connection.peer, None)

    def is_full(self, peer: str) -> bool:
        """Return whether a peer may open no more connections."""
        return self._count >= self._most or self._held(peer) >= self._of_peer

    def longest_waiting(self, peer: str | None = None) -> list[HeldT]:
        """Return the idle connection to close for a new one of a peer, if there is any.

        It is the peer's where it is at its limit, else of the peer that has most.
        """
        if peer is None or self._held(peer) < self._of_peer:
            peer = max(self._by_peer, key=self._held, default="")
        waiting = [each for each in self._by_peer.get(peer, ()) if not each.is_busy]
        return [min(waiting, key=lambda each: each.waits_since)] if waiting else []

    def _held(self, peer: str) -> int:
        return len(self._by_peer.get(peer, ()))

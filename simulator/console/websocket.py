"""The server's side of a websocket, as strict as Proxmox VE's: whole, masked frames only."""

from __future__ import annotations

import base64
import hashlib
import io
import socket
import threading

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10


def accept_key(key: str) -> str:
    """Return the `Sec-WebSocket-Accept` for a client's key."""
    digest = hashlib.sha1((key + _GUID).encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


class Gone(Exception):
    """The peer has closed the connection, or broken its rules."""


class WebSocket:
    """A connection after the upgrade, as a stream of bytes."""

    def __init__(self, connection: socket.socket, reader: io.BufferedReader) -> None:
        self._connection, self._reader = connection, reader
        self._unread = b""
        self._writing = threading.Lock()

    def exactly(self, count: int) -> bytes:
        """Return so many bytes. Raises Gone."""
        while len(self._unread) < count:
            self._unread += self.receive()
        found, self._unread = self._unread[:count], self._unread[count:]
        return found

    def line(self) -> bytes:
        """Return the bytes up to a line's end, without it. Raises Gone."""
        while b"\n" not in self._unread:
            self._unread += self.receive()
        found, _end, self._unread = self._unread.partition(b"\n")
        return found

    def receive(self) -> bytes:
        """Return the next frame's content. Raises Gone."""
        while True:
            opcode, content = self._frame()
            if opcode in (_TEXT, _BINARY):
                return content
            if opcode == _PING:
                self._write(_PONG, content)
            elif opcode != _PONG:
                raise Gone

    def send(self, content: bytes) -> None:
        """Send one binary frame. Raises Gone."""
        self._write(_BINARY, content)

    def cut(self) -> None:
        """Close the connection from another thread; who reads sees it gone."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def _frame(self) -> tuple[int, bytes]:
        first, second = self._read(2)
        whole, masked = first & 0x80, second & 0x80
        if not whole or not masked or first & 0x70:
            raise Gone
        length = second & 0x7F
        if length > 125:
            length = int.from_bytes(self._read(2 if length == 126 else 8), "big")
        mask = self._read(4)
        return first & 0x0F, _unmasked(self._read(length), mask)

    def _read(self, count: int) -> bytes:
        try:
            found = self._reader.read(count)
        except (OSError, ValueError) as error:
            raise Gone from error
        if len(found) < count:
            raise Gone
        return found

    def _write(self, opcode: int, content: bytes) -> None:
        count = len(content)
        if count < 126:
            length = bytes([count])
        elif count < 1 << 16:
            length = b"\x7e" + count.to_bytes(2, "big")
        else:
            length = b"\x7f" + count.to_bytes(8, "big")
        try:
            with self._writing:
                self._connection.sendall(bytes([0x80 | opcode]) + length + content)
        except OSError as error:
            raise Gone from error


def _unmasked(content: bytes, mask: bytes) -> bytes:
    count = len(content)
    whole = (mask * (count // 4 + 1))[:count]
    return (int.from_bytes(content, "big") ^ int.from_bytes(whole, "big")).to_bytes(count, "big")

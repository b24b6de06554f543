"""Proxmox VE's terminal proxy as a stream: what is typed is framed, what is shown is not."""

from __future__ import annotations

from common.streams import Exactly, Stream

_GREETING = b"OK"


class TerminalRefusedError(Exception):
    """The terminal proxy didn't let us in."""


class Terminal:
    """The serial line behind a terminal proxy."""

    def __init__(self, stream: Exactly) -> None:
        self._stream = stream

    def receive(self) -> bytes | None:
        """Return what the line shows; None at the end."""
        return self._stream.receive()

    def send(self, content: bytes) -> None:
        """Type it. Raises OSError at the end."""
        self._stream.send(b"0:%d:%b" % (len(content), content))

    def close(self) -> None:
        """Close it."""
        self._stream.close()


def enter(stream: Stream, user: str, ticket: str) -> Terminal:
    """Return the terminal, once the proxy has let us in. Raises TerminalRefusedError, OSError."""
    stream.send(f"{user}:{ticket}\n".encode())
    proxy = Exactly(stream)
    if proxy.exactly(len(_GREETING)) != _GREETING:
        raise TerminalRefusedError("The terminal proxy refused the ticket.")
    return Terminal(proxy)

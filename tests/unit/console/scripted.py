"""A stream whose peer says what was written for it."""

from __future__ import annotations


class Scripted:
    """Receives the given contents, then the end; remembers what was sent."""

    def __init__(self, *contents: bytes) -> None:
        self._contents = list(contents)
        self.sent: list[bytes] = []
        self.closed = False

    def receive(self) -> bytes | None:
        return self._contents.pop(0) if self._contents else None

    def send(self, content: bytes) -> None:
        self.sent.append(content)

    def close(self) -> None:
        self.closed = True

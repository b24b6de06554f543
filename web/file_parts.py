"""Parts of files as response bodies: long bodies that are never held in memory."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: as much as is sent at a time, so that other connections get their turn
_PIECE_BYTES = 1 << 20


class FilePart:
    """A part of a file, which is open until all is sent or this object is garbage-collected."""

    def __init__(self, path: Path) -> None:
        """All of it. Raises OSError."""
        self._number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._number).st_size
        """Of the whole file, bytes."""
        self.first, self.left = 0, self.size
        self.closed: Callable[[], None] = _nothing
        """Called when the file is closed."""

    def narrow(self, first: int, last: int) -> None:
        """Keep only these bytes, both counted from 0 and inclusive."""
        self.first, self.left = first, last - first + 1

    def send(self, real: socket.socket) -> None:
        """Send some of it. Raises what a socket does, and OSError where the file was cut."""
        sent = os.sendfile(real.fileno(), self._number, self.first, min(self.left, _PIECE_BYTES))
        if not sent:
            raise OSError("The file is shorter than it was.")
        self.first, self.left = self.first + sent, self.left - sent

    def pieces(self, environ: dict[str, Any]) -> Iterator[bytes]:
        """Yield it; nothing where the server sends it by itself (``web.serving``)."""
        take = getattr(environ.get("gunicorn.socket"), "take_file", None)
        if take is not None:
            take(self)
            return
        while self.left:
            data = os.pread(self._number, min(self.left, _PIECE_BYTES), self.first)
            if not data:
                raise OSError("The file is shorter than it was.")
            self.first, self.left = self.first + len(data), self.left - len(data)
            yield data

    def __del__(self) -> None:
        """Close the file."""
        os.close(self._number)
        self.closed()


def _nothing() -> None:
    """Do nothing."""

"""The body of an upload to Proxmox VE, made while it is sent.

Proxmox VE wants a length, the fields in their order, and the file last (captured with 9.2).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping


class Multipart:
    """A form with one file, for ``requests``: it has a length and can be iterated again."""

    def __init__(
        self,
        fields: Mapping[str, str],
        file_name: str,
        size_bytes: int,
        pieces: Callable[[], Iterator[bytes]],
    ) -> None:
        self._boundary = secrets.token_hex(16)
        self._size_bytes, self._pieces = size_bytes, pieces
        parts = [
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}'
            for name, value in fields.items()
        ]
        file = (
            f"--{self._boundary}\r\n"
            f'Content-Disposition: form-data; name="filename"; filename="{file_name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        self._head = "\r\n".join([*parts, file]).encode()
        self._tail = f"\r\n--{self._boundary}--\r\n".encode()

    @property
    def content_type(self) -> str:
        """The content type of the request."""
        return f"multipart/form-data; boundary={self._boundary}"

    def __len__(self) -> int:
        return len(self._head) + self._size_bytes + len(self._tail)

    def __iter__(self) -> Iterator[bytes]:
        yield self._head
        yield from self._pieces()
        yield self._tail

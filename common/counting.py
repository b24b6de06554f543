"""Numbers of things in sentences for people."""

from __future__ import annotations


def counted(count: int, one: str, several: str = "") -> str:
    """Return so many things in words; ``several`` where it isn't ``one`` with an s.

    >>> counted(1, "host"), counted(0, "host"), counted(2, "server is", "servers are")
    ('1 host', '0 hosts', '2 servers are')
    """
    return f"{count} {one if count == 1 else several or f'{one}s'}"

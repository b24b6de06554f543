"""Values in commands that a page shows: as shells read them, and none as an option. Pure."""

from __future__ import annotations

from shlex import quote


def argument(text: str) -> str:
    """Return an argument that no option follows.

    >>> argument("web"), argument("a b"), argument("-web")
    ('web', "'a b'", '-- -web')
    """
    return f"-- {quote(text)}" if text.startswith("-") else quote(text)


def option(name: str, value: str) -> str:
    """Return a long option with its value.

    >>> option("flavor", "small"), option("flavor", "-small")
    ('--flavor small', '--flavor=-small')
    """
    return f"--{name}{'=' if value.startswith('-') else ' '}{quote(value)}"


def file(name: str) -> str:
    """Return a file of the present folder.

    >>> file("my key.pem"), file("-key.pem")
    ("'my key.pem'", './-key.pem')
    """
    return quote(f"./{name}" if name.startswith("-") else name)

"""Numbers that clients write: ASCII digits, and any number of them.

Python takes the digits of all scripts for numbers, and converts no more than 4,300 of them. The
real services, databases and Proxmox VE know 0 to 9.
"""

from __future__ import annotations

import re

_INTEGER = re.compile(r"\s*([-+]?)([0-9]+)\s*", re.ASCII)


def is_digits(text: str) -> bool:
    """Return whether a text is one or more of the digits 0 to 9."""
    return text.isascii() and text.isdigit()


def integer(text: str, most: int = 2**63 - 1) -> int | None:
    """Return the whole number that a text stands for, spaces around it aside; None: it is none.

    It is cut to ``most``, and to minus that.
    """
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    size = number(found[2], most)
    assert size is not None
    return -size if found[1] == "-" else size


def number(text: str, most: int) -> int | None:
    """Return the number that the ASCII digits of a text stand for, at most ``most``.

    None for a text that is something else.
    """
    if not is_digits(text):
        return None
    digits = text.lstrip("0")
    if len(digits) > len(str(most)):
        return most
    return min(int(digits or "0"), most)

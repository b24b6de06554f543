"""Numbers that clients write, of any length: Python converts no more than 4,300 digits."""

from __future__ import annotations


def number(text: str, most: int) -> int | None:
    """Return the number that the ASCII digits of a text stand for, at most ``most``.

    None for a text that is something else.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0")
    if len(digits) > len(str(most)):
        return most
    return min(int(digits or "0"), most)

"""Numbers in parameters: ASCII digits, as everywhere in Proxmox VE."""

from __future__ import annotations


def is_digits(text: str | bytes) -> bool:
    """Return whether a text is one or more of the digits 0 to 9."""
    return text.isascii() and text.isdigit()

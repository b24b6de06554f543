"""Property strings (`virtio=AA:…,bridge=vmbr0`): parsing and printing."""

from __future__ import annotations

from collections.abc import Mapping


def split(text: str, default: str) -> dict[str, str]:
    """Return a string's properties in order; a part without a key has the default key."""
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            found[key.strip()] = value
        elif part.strip():
            found[default] = part
    return found


def join(first: str, rest: Mapping[str, str]) -> str:
    """Return a property string: the leading part, then the others by name."""
    return ",".join([first, *(f"{key}={rest[key]}" for key in sorted(rest))])

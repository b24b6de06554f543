"""Suggest commands for words that are none."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

_MOST = 3
_SHOWN = 20
_LEAST_ALIKE = 0.6


def unknown_command(words: Sequence[str], commands: Collection[str]) -> str:
    """Return the error message, with the commands that exist instead."""
    typed = " ".join(words)
    longer = sorted(name for name in commands if name.startswith(f"{typed} "))
    if longer:
        rest = ", …" if len(longer) > _SHOWN else ""
        return f"'{typed}' is not a whole command. There are: {', '.join(longer[:_SHOWN])}{rest}"
    alike = similar(words, commands)
    if not alike:
        return f"'{typed}' is not a command; see 'micronova help'."
    return f"'{typed}' is not a command. Did you mean {' or '.join(map(repr, alike))}?"


def similar(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return the commands that are most like the first words, the best first."""
    rated = []
    for name in commands:
        start = " ".join(words[: len(name.split())])
        ratio = difflib.SequenceMatcher(None, start, name).ratio()
        # "server del" is begun, not mistyped.
        rated.append((max(ratio, 0.95 if name.startswith(start) else 0.0), name))
    rated = [one for one in rated if one[0] >= _LEAST_ALIKE]
    best = max(rated, default=(0.0, ""))[0]
    near = sorted(((-ratio, name) for ratio, name in rated if ratio > best - 0.1))
    return [name for _, name in near[:_MOST]]

"""Suggest commands for words that are none."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from cli.osc.absent import absent

_MOST = 3
_SHOWN = 20
_LEAST_ALIKE = 0.6
#: how much less alike than the best one a suggestion may be
_NEAR = 0.1


def unknown_command(words: Sequence[str], commands: Collection[str]) -> str:
    """Return the error message, with the commands that exist instead."""
    typed = " ".join(words)
    longer = sorted(name for name in commands if name.startswith(f"{typed} "))
    if longer:
        rest = ", …" if len(longer) > _SHOWN else ""
        return f"'{typed}' is not a whole command. There are: {', '.join(longer[:_SHOWN])}{rest}"
    if missing := absent(words):
        return f"There are no {missing} here: '{typed}' is a command for other clouds."
    alike = similar(words, commands)
    if not alike:
        return f"'{typed}' is not a command; see 'micronova help'."
    return f"'{typed}' is not a command. Did you mean {' or '.join(map(repr, alike))}?"


def similar(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return the commands that are most like the first words, the best first."""
    rated: list[tuple[float, str]] = []
    best = 0.0
    for name in commands:
        start = " ".join(words[: len(name.split())])
        ratio = _ratio(start, name, max(_LEAST_ALIKE, best - _NEAR))
        rated.append((-ratio, name))
        best = max(best, ratio)
    near = sorted(one for one in rated if -one[0] >= _LEAST_ALIKE and -one[0] > best - _NEAR)
    return [name for _, name in near[:_MOST]]


def _ratio(start: str, name: str, least: float) -> float:
    """Return how alike they are, from 0 to 1; 0 if that is less than ``least``."""
    begun = name.startswith(start)
    if not begun and 2 * min(len(start), len(name)) < least * (len(start) + len(name)):
        return 0.0
    matcher = difflib.SequenceMatcher(None, start, name)
    if not begun and matcher.quick_ratio() < least:
        return 0.0
    # "server del" is begun, not mistyped.
    return max(matcher.ratio(), 0.95 if begun else 0.0)

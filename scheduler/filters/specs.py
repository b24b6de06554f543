"""The little language of extra specs' values, e.g. ``>= 8``, ``<in> avx``, ``<or> a <or> b``.

As oslo_utils.specs_matcher has it, compiled once: that one builds its grammar at each match.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping

Predicate = Callable[[str], bool]


def _number(compare: Callable[[float, float], bool]) -> Callable[[list[str]], Predicate]:
    def made(words: list[str]) -> Predicate:
        def matches(value: str) -> bool:
            try:
                return compare(float(value), float(words[0]))
            except ValueError:
                return False

        return matches

    return made


def _text(compare: Callable[[str, str], bool]) -> Callable[[list[str]], Predicate]:
    return lambda words: lambda value: compare(value, words[0])


def _all_in(words: list[str]) -> Predicate:
    return lambda value: all(word in value for word in words)


def _any_of(words: list[str]) -> Predicate:
    choices = frozenset(words) - {"<or>"}
    return lambda value: value in choices


#: operator → (whether it takes several words, what makes its predicate)
_OPERATORS: Mapping[str, tuple[bool, Callable[[list[str]], Predicate]]] = {
    "=": (False, _number(operator.ge)),  # "equal to or greater than", so Nova's documentation
    "==": (False, _number(operator.eq)),
    "!=": (False, _number(operator.ne)),
    ">=": (False, _number(operator.ge)),
    "<=": (False, _number(operator.le)),
    ">": (False, _number(operator.gt)),
    "<": (False, _number(operator.lt)),
    "s==": (False, _text(operator.eq)),
    "s!=": (False, _text(operator.ne)),
    "s>=": (False, _text(operator.ge)),
    "s<=": (False, _text(operator.le)),
    "s>": (False, _text(operator.gt)),
    "s<": (False, _text(operator.lt)),
    "<in>": (False, _all_in),
    "<all-in>": (True, _all_in),
    "<or>": (True, _any_of),
}


@functools.lru_cache(maxsize=1024)
def compiled(spec: str) -> Predicate:
    """A function that says whether a value matches; what is no operator is compared as text."""
    head, *words = spec.split() or [""]
    several, make = _OPERATORS.get(head, (False, None))
    if make is None or not (words if several else len(words) == 1):
        return lambda value: value == spec
    return make(words)


#: a number that is so large counts versions as Nova does: 8002004 is 8.2.4
_COUNTED = 1_000_000
_ORDERS: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@functools.lru_cache(maxsize=256)
def compiled_version(spec: str) -> Predicate:
    """As ``compiled``, but of versions: 9.10 is after 9.2, and ``== 9.2`` is any 9.2.x."""
    head, *words = spec.split() or [""]
    order = _ORDERS.get(head)
    asked = _version(words[0]) if order is not None and len(words) == 1 else None
    if order is None or asked is None:
        return compiled(spec)

    def matches(value: str) -> bool:
        has = _version(value)
        # Only as far as it is asked: 9.2.11 isn't after 9.2.
        return has is not None and order((*has, 0, 0, 0)[: len(asked)], asked)

    return matches


def _version(text: str) -> tuple[int, ...] | None:
    parts = text.split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        return None
    if len(parts) == 1 and int(text) >= _COUNTED:
        number = int(text)
        return number // _COUNTED, number // 1000 % 1000, number % 1000
    return tuple(int(part) for part in parts)

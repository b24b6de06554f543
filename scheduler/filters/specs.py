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

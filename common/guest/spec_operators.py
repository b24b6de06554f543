"""The syntax of extra specs' values, e.g. ``>= 8``, ``<in> avx``, ``<or> a <or> b``.

As in nova/scheduler/filters/extra_specs_ops.py, with ``>`` and ``<`` in addition; Cinder's are the
same. Where Nova fails on what is no number, it doesn't match here.
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
    choices = frozenset(words[::2])
    return lambda value: value in choices


def _in(words: list[str]) -> Predicate:
    return lambda value: words[0] in value


#: operator → what makes its predicate from the first word after it; the last two take all words
_OPERATORS: Mapping[str, Callable[[list[str]], Predicate]] = {
    "=": _number(operator.ge),  # "equal to or greater than", so Nova's documentation
    "==": _number(operator.eq),
    "!=": _number(operator.ne),
    ">=": _number(operator.ge),
    "<=": _number(operator.le),
    ">": _number(operator.gt),  # these two aren't Nova's
    "<": _number(operator.lt),
    "s==": _text(operator.eq),
    "s!=": _text(operator.ne),
    "s>=": _text(operator.ge),
    "s<=": _text(operator.le),
    "s>": _text(operator.gt),
    "s<": _text(operator.lt),
    "<in>": _in,
    "<all-in>": _all_in,
    "<or>": _any_of,
}


@functools.lru_cache(maxsize=1024)
def compiled(spec: str) -> Predicate:
    """Return a predicate of values; a text without operator must be equal."""
    head, *words = spec.split() or [""]
    make = _OPERATORS.get(head)
    if make is None:
        return lambda value: value == spec
    return make(words) if words else lambda value: False

"""Extra specs about versions, besides those of ``common.guest.spec_operators``."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping

from common.guest.spec_operators import Predicate, compiled

#: a number of this size is a version in Nova's form: 8002004 is 8.2.4
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
    """Return the same for versions: 9.10 is after 9.2, and ``== 9.2`` is any 9.2.x."""
    head, *words = spec.split() or [""]
    order = _ORDERS.get(head)
    asked = _version(words[0]) if order is not None and len(words) == 1 else None
    if order is None or asked is None:
        return compiled(spec)

    def matches(value: str) -> bool:
        has = _version(value)
        # Only as many parts as asked for: 9.2.11 isn't after 9.2.
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

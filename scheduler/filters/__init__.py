"""Filters: plain functions ``(host, request) → reason | None``; the reason carries the numbers.

A filter is one function with the mark ``host_filter``, in a module of this room: nothing else
names it. Filters of other people are entry points; see ``scheduler.service``.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "host_filter"


@dataclass(frozen=True)
class Marked:
    """A filter's attributes besides its function."""

    after: str | None
    """The filter that it follows in the default order; None: it is the first."""
    words: str
    """What a summary says of the hosts that it refused."""


def host_filter(*, after: str | None, words: str) -> Callable[[F], F]:
    """Mark a function, in whichever form, as a filter under its own name.

    Cheap filters that refuse many hosts come first: ``after`` names the one before.
    """

    def mark(function: F) -> F:
        function.__dict__[_MARK] = Marked(after, words)
        return function

    return mark


@functools.cache
def found() -> Mapping[str, Callable[..., str | None]]:
    """Return all filters of this room, in the default order.

    Filters with the same predecessor are ordered by name. Raises ValueError for a filter whose
    predecessor does not exist.
    """
    known: dict[str, Callable[..., str | None]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        own = {name: one for name, one in vars(module).items() if _MARK in _marks(one)}
        known |= {name: one for name, one in own.items() if one.__module__ == module.__name__}
    ordered: list[str] = []
    _follow(known, None, ordered)
    if len(ordered) != len(known):
        lost = sorted(known.keys() - set(ordered))
        raise ValueError(f"the filters {lost} are after a filter that does not exist")
    return {name: known[name] for name in ordered}


def words() -> Mapping[str, str]:
    """Return {filter: what a summary says of the hosts that it refused}."""
    return {name: one.__dict__[_MARK].words for name, one in found().items()}


def _follow(
    known: Mapping[str, Callable[..., Any]], after: str | None, ordered: list[str]
) -> None:
    """Add the filters that follow one, each with those that follow it."""
    for name in sorted(name for name, one in known.items() if _marks(one)[_MARK].after == after):
        ordered.append(name)
        _follow(known, name, ordered)


def _marks(one: Any) -> Mapping[str, Any]:
    return getattr(one, "__dict__", {}) if callable(one) else {}

"""Columns of tables: which attribute under which header, and how a value reads for people.

With ``-f json`` and ``-f yaml`` a value's structure is preserved; in tables it becomes text, in
python-openstackclient's form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cliff.columns import FormattableColumn


class Pairs(FormattableColumn[Any]):
    """A mapping: ``a='1', b.c='2'``."""

    def human_readable(self) -> str:
        """Return the pairs in the order of their keys."""
        return pairs(self._value or {})

    def machine_readable(self) -> Any:
        """Return the mapping."""
        return dict(self._value or {})


class Listed(FormattableColumn[Any]):
    """A list of words, sorted: ``a, b``."""

    def human_readable(self) -> str:
        """Return the words with commas."""
        return ", ".join(sorted(str(word) for word in self._value or ()))

    def machine_readable(self) -> Any:
        """Return the list."""
        return list(self._value or ())


class PairsList(FormattableColumn[Any]):
    """A list of mappings, a line each."""

    def human_readable(self) -> str:
        """Return a line for each mapping."""
        return "\n".join(pairs(dict(item)) for item in self._value or ())

    def machine_readable(self) -> Any:
        """Return the list of mappings."""
        return [dict(item) for item in self._value or ()]


class ListedPairs(FormattableColumn[Any]):
    """A mapping of lists: ``a=1, 2; b=3``."""

    def human_readable(self) -> str:
        """Return the lists in the order of their keys."""
        lists = {key: value for key, value in (self._value or {}).items() if value is not None}
        return "; ".join(
            f"{key}={', '.join(sorted(str(v) for v in value))}"
            for key, value in sorted(lists.items())
        )

    def machine_readable(self) -> Any:
        """Return the mapping of lists."""
        return dict(self._value or {})


class Addresses(ListedPairs):
    """A server's addresses by network: ``private=10.0.0.2, fd00::2``."""

    def __init__(self, value: Any) -> None:
        super().__init__(
            {
                network: [entry["addr"] for entry in entries if "addr" in entry]
                for network, entries in (value or {}).items()
            }
        )


_POWER_STATES = {
    0: "NOSTATE",
    1: "Running",
    3: "Paused",
    4: "Shutdown",
    6: "Crashed",
    7: "Suspended",
}


class Power(FormattableColumn[Any]):
    """Nova's number of a power state, as a word."""

    def human_readable(self) -> str:
        """Return the word."""
        return _POWER_STATES.get(self._value, "N/A")


class Blank(FormattableColumn[Any]):
    """A value whose absence is shown as nothing."""

    def human_readable(self) -> str:
        """Return the text, or nothing."""
        return "" if self._value is None else str(self._value)


class Used(FormattableColumn[Any]):
    """How much of how much: a pair (used, total), shown as ``2/8``."""

    def human_readable(self) -> str:
        """Return ``used/total``, with a dash for what isn't known."""
        return "/".join("-" if number is None else str(number) for number in self._value)

    def machine_readable(self) -> Any:
        """Return both numbers by name."""
        used, total = self._value
        return {"used": used, "total": total}


Cell: TypeAlias = type[FormattableColumn[Any]]


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    header: str
    attribute: str
    cell: Cell | None = None


def table(
    columns: Sequence[Column], resources: Iterable[Any]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return headers and rows. A missing attribute is an empty cell."""
    rows = [
        tuple(_cell(getattr(item, c.attribute, ""), c.cell) for c in columns) for item in resources
    ]
    return tuple(c.header for c in columns), rows


def shown(
    values: Mapping[str, Any],
    renamed: Mapping[str, str],
    hidden: Iterable[str] = (),
    cells: Mapping[str, Cell] | None = None,
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return names and values of one thing, sorted by name.

    :param renamed: attribute of the SDK → name to show.
    :param hidden: attributes not to show.
    :param cells: name to show → how.
    """
    unseen = {*hidden, "location"}
    named = {renamed.get(key, key): v for key, v in values.items() if key not in unseen}
    names = tuple(sorted(named))
    return names, tuple(_cell(named[name], (cells or {}).get(name)) for name in names)


def pairs(values: Mapping[str, Any], prefix: str = "") -> str:
    """Return ``key='value'`` of every entry; nested keys are joined with dots.

    >>> pairs({"b": None, "a": {"x": 1}})
    "a.x='1', b="
    """
    parts = []
    for key in sorted(values):
        name, value = f"{prefix}{key}", values[key]
        if isinstance(value, Mapping):
            parts.append(pairs(value, f"{name}."))
        else:
            parts.append(f"{name}=" if value is None else f"{name}='{value}'")
    return ", ".join(parts)


def _cell(value: Any, cell: Cell | None) -> Any:
    return value if cell is None else cell(value)

"""Colours of states in tables: on a terminal only, and not where ``NO_COLOR`` is set."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from cliff.columns import FormattableColumn

#: columns and fields whose values are states
_STATES = frozenset(
    {
        *("status", "state", "task state", "power state", "vm state", "host status"),
        *("os-ext-sts:task_state", "os-ext-sts:power_state", "os-ext-sts:vm_state"),
        *("admin state", "admin state up", "result", "host_status"),
    }
)
_GREEN, _RED, _YELLOW, _FAINT, _END = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"
_WELL = frozenset(
    {
        *("active", "available", "in-use", "up", "enabled", "running", "done", "success"),
        *("online", "completed", "confirmed", "finished", "queued"),
    }
)
_OFF = frozenset(
    {
        *("shutoff", "stopped", "shutdown", "disabled", "deleted", "soft_deleted", "paused"),
        *("suspended", "shelved", "shelved_offloaded", "nostate", "none", "n/a", "-", ""),
    }
)
_ILL = ("error", "down", "fail", "crashed", "killed", "lost")


class State(FormattableColumn[Any]):
    """A state in its colour; to machines the value as it was."""

    def human_readable(self) -> str:
        """Return the text in its colour."""
        inner = self._value
        text = inner.human_readable() if isinstance(inner, FormattableColumn) else str(inner)
        colour = colour_of(text)
        return f"{colour}{text}{_END}" if colour and text else text

    def machine_readable(self) -> Any:
        """Return the value."""
        inner = self._value
        return inner.machine_readable() if isinstance(inner, FormattableColumn) else inner


def colour_of(text: str) -> str:
    """Return the colour of a state: green it is well, red it failed, faint it is off.

    Yellow is work in progress.
    """
    word = text.strip().lower()
    if word in _WELL:
        return _GREEN
    if word in _OFF:
        return _FAINT
    return _RED if word.startswith(_ILL) else _YELLOW


def wanted(parsed_args: argparse.Namespace, stream: TextIO) -> bool:
    """Return whether a table is to have colours: for people, at a terminal that has them.

    A column that is wrapped has none: the wrapping would cut them apart.
    """
    return (
        getattr(parsed_args, "formatter", None) == "table"
        and not getattr(parsed_args, "fit_width", False)
        and not getattr(parsed_args, "max_width", 0)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
        and stream.isatty()
    )


def rows(columns: Sequence[str], data: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return a table's rows with the states in colours."""
    are_states = [name.lower() in _STATES for name in columns]
    return [
        tuple(
            State(cell) if is_state else cell
            for cell, is_state in zip(row, are_states, strict=True)
        )
        for row in data
    ]


def fields(columns: Sequence[str], data: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of one thing with the states in colours."""
    return rows(columns, [data])[0]

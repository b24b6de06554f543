"""``--watch``: a table or a thing again and again, redrawn at a terminal, else at each change."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from io import StringIO
from typing import Any, ClassVar, TextIO

from cli.command import OneLineErrors
from cli.errors import CommandFailed
from cli.finding import NotFound
from common import clock
from common.counting import counted

#: the shortest and the longest pause between two looks
LEAST_SECONDS, MOST_SECONDS = 0.5, 86_400.0

_WRAP_OFF, _WRAP_ON = "\x1b[?7l", "\x1b[?7h"
_CLEAR, _HOME, _END_OF_LINE, _BELOW = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"


def interval(text: str) -> float:
    """Return a pause in seconds.

    :raises argparse.ArgumentTypeError: it is none, too short, or longer than a day.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"not from {LEAST_SECONDS:g} to {MOST_SECONDS:g}: {text}")
    return seconds


WATCH_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--watch",),
        {"action": "store_true", "help": "Look again and again until Ctrl-C, and show changes"},
    ),
    (
        ("--interval",),
        {
            "metavar": "<seconds>",
            "type": interval,
            "help": "With --watch: seconds between two looks",
        },
    ),
)


class _Page(StringIO):
    """What one look prints; a terminal if the real output is one."""

    def __init__(self, real: TextIO) -> None:
        super().__init__()
        self._real = real

    def isatty(self) -> bool:
        """Return whether it is shown at a terminal."""
        return self._real.isatty()


class Watched(OneLineErrors):
    """A command that shows something, with ``--watch``; Ctrl-C ends it, which is no failure."""

    watch_seconds: ClassVar[float] = 2.0
    """The pause between two looks, unless ``--interval`` says another."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser with the options of watching."""
        parser = super().get_parser(prog_name)
        for names, keywords in WATCH_OPTIONS:
            parser.add_argument(*names, **keywords)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run once, or with ``--watch`` until the user ends it.

        :raises CommandFailed: the first look failed, or what is watched is gone.
        """
        if not parsed_args.watch:
            return super().run(parsed_args)
        seconds = parsed_args.interval or self.watch_seconds
        screen = screen_of(self.app.stdout, seconds)
        screen.show(self._look(parsed_args))
        try:
            while True:
                self._pause(seconds)
                screen.show(self._later(parsed_args))
        except KeyboardInterrupt:
            return 0
        finally:
            screen.close()

    def _look(self, parsed_args: argparse.Namespace) -> str:
        """Return what a run prints."""
        app: Any = self.app
        real, app.stdout = app.stdout, _Page(app.stdout)
        try:
            super().run(argparse.Namespace(**vars(parsed_args)))
            return str(app.stdout.getvalue())
        finally:
            app.stdout = real

    def _later(self, parsed_args: argparse.Namespace) -> str:
        """Return what a further run prints: an error in one line, as the next may succeed."""
        try:
            return self._look(parsed_args)
        except CommandFailed as error:
            if isinstance(error.__cause__, NotFound):
                raise
            return f"{error}\n"

    def _pause(self, seconds: float) -> None:
        app: Any = self.app
        app.client_manager.micronova.pause(seconds)


class Changes:
    """Output that isn't a terminal: each text once, when it differs from the last."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._last = stream, ""

    def show(self, text: str) -> None:
        """Write a text that is new."""
        if text != self._last:
            self._stream.write(text)
            self._stream.flush()
            self._last = text

    def close(self) -> None:
        """Do nothing."""


class Redrawn:
    """A terminal: the text is drawn over the last one; what doesn't fit is counted."""

    def __init__(self, stream: TextIO, seconds: float) -> None:
        self._stream, self._seconds = stream, seconds
        stream.write(_WRAP_OFF + _CLEAR)

    def show(self, text: str) -> None:
        """Draw a text under a line with the time."""
        size = shutil.get_terminal_size()
        head = f"Every {self._seconds:g} s, Ctrl-C ends. {clock.utcnow():%H:%M:%S} UTC"
        lines = fitting([head, *text.splitlines()], size.lines - 1)
        drawn = "".join(f"{line}{_END_OF_LINE}\n" for line in lines)
        self._stream.write(f"{_HOME}{drawn}{_BELOW}")
        self._stream.flush()

    def close(self) -> None:
        """Leave the terminal as it was, with the last text on it."""
        self._stream.write(_WRAP_ON)
        self._stream.flush()


def screen_of(stream: TextIO, seconds: float) -> Changes | Redrawn:
    """Return what suits the output."""
    return Redrawn(stream, seconds) if stream.isatty() else Changes(stream)


def fitting(lines: Sequence[str], most: int) -> list[str]:
    """Return as many lines as fit; the last one counts those that don't.

    >>> fitting(["a", "b", "c"], 2)
    ['a', '2 more lines']
    """
    if len(lines) <= most:
        return list(lines)
    kept = max(most - 1, 0)
    return [*lines[:kept], counted(len(lines) - kept, "more line")]

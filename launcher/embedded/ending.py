"""The end of a process tree: stage by stage, a stage's processes together, and told.

Nothing that is under way is cut off: each process ends what it has begun. Whoever doesn't want to
wait asks a second time (Ctrl-C), and all that is left is killed; the next start makes up for it.
"""

from __future__ import annotations

import selectors
import signal
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from launcher.embedded.signals import numbers, told_signals

IMPATIENT = signal.SIGINT


class Part(Protocol):
    """A process that leads a group of its own."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def pid(self) -> int | None:
        """The process ID, or None when it doesn't run (any more)."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it and what it started, at once."""


@runtime_checkable
class Talker(Protocol):
    """A part that tells what it does."""

    def heard(self) -> Sequence[str]:
        """What it has told since it was asked last, for people."""

    def fileno(self) -> int | None:
        """What becomes readable when it tells something; None when it can't any more."""


class Ending:
    """Ends parts; `say` is called with what is waited for."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.was_cut_short = False
        """Whether somebody asked a second time."""

    def run(self, stages: Sequence[Sequence[Part]]) -> None:
        """Return when all have ended."""
        with told_signals() as number_of_signals:
            for stage in stages:
                running = _running(stage)
                if running:
                    self._say(f"waiting for {' and '.join(called(part) for part in running)}")
                for part in running:
                    part.terminate()
                while running:
                    self._wait(number_of_signals, running)
                    running = _running(running)

    def _wait(self, wakeup: int, running: Sequence[Part]) -> None:
        """Return when something happened: an end, a word, a signal."""
        talkers = [part for part in running if isinstance(part, Talker)]
        with selectors.DefaultSelector() as selector:
            selector.register(wakeup, selectors.EVENT_READ)
            for descriptor in (talker.fileno() for talker in talkers):
                if descriptor is not None:
                    selector.register(descriptor, selectors.EVENT_READ)
            selector.select()
        if IMPATIENT in numbers(wakeup):
            self.was_cut_short = True
        if self.was_cut_short:
            for part in running:
                part.kill()
        for talker in talkers:
            for text in talker.heard():
                self._say(text)


def called(part: Part) -> str:
    """Return a part's name, with an article unless it is a proper one."""
    return part.name if part.name[:1].isupper() else f"the {part.name}"


def _running(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if part.pid is not None]

"""Stops a process tree, stage by stage; the processes of a stage together.

Each process finishes what it has begun. A second Ctrl-C kills what is left; the next start repairs
what that interrupted.
"""

from __future__ import annotations

import selectors
import signal
from collections.abc import Callable, Sequence
from typing import Protocol

from launcher.embedded.signals import numbers, received_signals

IMPATIENT = signal.SIGINT


class Part(Protocol):
    """A process that leads a group of its own."""

    @property
    def title(self) -> str:
        """The name as it stands in a sentence."""

    @property
    def pid(self) -> int | None:
        """The process ID, or None when it doesn't run (any more)."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """Kill it and what it started."""

    def steps(self) -> Sequence[str]:
        """Return the steps reported since the last call, for people."""

    def fileno(self) -> int | None:
        """Return what becomes readable with a report; None when none can come any more."""


class Ending:
    """Stops parts; `say` is called with what is waited for."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.was_cut_short = False
        """Whether a second signal killed what was left."""

    def run(self, stages: Sequence[Sequence[Part]]) -> None:
        """Return when all have ended."""
        with received_signals() as number_of_signals:
            for stage in stages:
                running = _running(stage)
                if running:
                    self._say(f"waiting for {' and '.join(part.title for part in running)}")
                for part in running:
                    part.terminate()
                while running:
                    self._wait(number_of_signals, running)
                    running = _running(running)

    def _wait(self, wakeup: int, running: Sequence[Part]) -> None:
        """Return after a part ended or reported something, or after a signal."""
        with selectors.DefaultSelector() as selector:
            selector.register(wakeup, selectors.EVENT_READ)
            for descriptor in (part.fileno() for part in running):
                if descriptor is not None:
                    selector.register(descriptor, selectors.EVENT_READ)
            selector.select()
        if IMPATIENT in numbers(wakeup):
            self.was_cut_short = True
        if self.was_cut_short:
            for part in running:
                part.kill()
        for part in running:
            for text in part.steps():
                self._say(text)


def _running(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if part.pid is not None]

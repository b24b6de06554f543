"""Whether a process lives, and whether it can serve: checks by name, asked by its metrics port."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from common.log import logger

LOG = logger(__name__)

Note = Callable[[], str | None]
"""Returns what an operator has to decide, in a sentence; None: nothing."""
Check = Callable[[], bool]
"""Returns whether all is well, or raises why not. Takes at most a few seconds."""

#: how long an answer is used again: more frequent requests cost no more
KEPT_SECONDS = 1.0


@dataclass(frozen=True)
class Health:
    """The checks of one service, or of several in one process."""

    alive: Mapping[str, Check] = field(default_factory=dict)
    """Whether it works on what comes; asks nobody else."""
    ready: Mapping[str, Check] = field(default_factory=dict)
    """Whether what it needs answers."""
    notes: Mapping[str, Note] = field(default_factory=dict)
    """What waits for an operator; it serves all the same."""

    def beside(self, name: str, other: Health) -> Health:
        """Return the checks of both, the other's under its name."""
        return Health(
            {**self.alive, **{f"{name} {key}": one for key, one in other.alive.items()}},
            {**self.ready, **{f"{name} {key}": one for key, one in other.ready.items()}},
            {**self.notes, **{f"{name} {key}": one for key, one in other.notes.items()}},
        )

    def noted(self) -> list[str]:
        """Return what waits for an operator, a sentence each."""
        return [text for text in map(_noted, self.notes.values()) if text is not None]


def _noted(note: Note) -> str | None:
    """Return a note; None where it can't be read now, which the checks show."""
    try:
        return note()
    except Exception as error:  # noqa: BLE001 - a note never fails the answer
        LOG.debug("A note can't be read: %s", error)
        return None


_leaving = threading.Event()
_left_at = float("inf")
#: for how long after that a proxy may still send something new: another machine's process that was
#: restarted just before is used again only after some checks
LEAVING_SECONDS = 2.0


def leave() -> None:
    """Note that this process ends: it is not ready any more, although it still takes requests."""
    global _left_at
    _left_at = time.monotonic()
    _leaving.set()


def stays() -> bool:
    """Return whether this process was not asked to end. A check."""
    return not _leaving.is_set()


def takes_new() -> bool:
    """Return whether a proxy may send this process something new. A check."""
    return time.monotonic() < _left_at + LEAVING_SECONDS


class Answer:
    """The result of some checks, kept for a moment; what fails is logged once."""

    def __init__(self, checks: Callable[[], Mapping[str, Check]]) -> None:
        self._checks = checks
        self._one = threading.Lock()
        self._until = 0.0
        self._failing: dict[str, str] = {}

    def ok(self) -> bool:
        """Return whether all is well."""
        with self._one:
            if time.monotonic() >= self._until:
                self._look()
                self._until = time.monotonic() + KEPT_SECONDS
            return not self._failing

    def _look(self) -> None:
        failing = {}
        for name, check in self._checks().items():
            try:
                if not check():
                    failing[name] = "no"
            except Exception as error:  # noqa: BLE001 - whatever it is, the check failed
                failing[name] = str(error) or type(error).__name__
        for name, why in failing.items():
            if name not in self._failing:
                LOG.warning("The check of %s fails: %s", name, why)
        for name in self._failing.keys() - failing.keys():
            LOG.info("The check of %s succeeds again.", name)
        self._failing = failing

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
#: the longest time until a prompt answer: HAProxy waits 3 s for it
PROMPT_SECONDS = 1.0
#: after which checks that still wait have failed, as three of HAProxy's in a row have
SLOW_SECONDS = 6.0
#: for how long checks may fail before a proxy is answered so: a question that fails on every one,
#: as connections are cut, would leave it no machine to send requests to, which can wait instead
FORGIVING_SECONDS = 3.0


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

    def __init__(
        self, checks: Callable[[], Mapping[str, Check]], kept_seconds: float = KEPT_SECONDS
    ) -> None:
        self._checks, self._kept_seconds = checks, kept_seconds
        self._one = threading.Lock()
        self._until = 0.0
        self._failing: dict[str, str] = {}

    def ok(self) -> bool:
        """Return whether all is well."""
        with self._one:
            if time.monotonic() >= self._until:
                self._look()
                self._until = time.monotonic() + self._kept_seconds
            return not self._failing

    def _look(self) -> None:
        failing = {}
        for name, check in self._checks().items():
            try:
                if not check():
                    failing[name] = "no"
            except Exception as error:  # noqa: BLE001 - whatever it is, the check failed
                # Another process's error has its traceback behind it.
                failing[name] = str(error).partition("\n")[0] or type(error).__name__
        for name, why in failing.items():
            if name not in self._failing:
                LOG.warning("The check of %s fails: %s", name, why)
        for name in self._failing.keys() - failing.keys():
            LOG.info("The check of %s succeeds again.", name)
        self._failing = failing


class PromptAnswer(Answer):
    """The same for who takes a late answer for none, as HAProxy does, and cuts connections then.

    While checks wait, for a database that stands still, the last result holds for some seconds;
    so it does when they fail after they had succeeded.
    """

    def __init__(
        self,
        checks: Callable[[], Mapping[str, Check]],
        *,
        takes: Check = lambda: True,
        kept_seconds: float = KEPT_SECONDS,
        prompt_seconds: float = PROMPT_SECONDS,
        slow_seconds: float = SLOW_SECONDS,
        forgiving_seconds: float = FORGIVING_SECONDS,
    ) -> None:
        """``takes`` is asked each time, and believed at once."""
        super().__init__(checks, kept_seconds)
        self._takes, self._forgiving_seconds = takes, forgiving_seconds
        self._well_at = float("-inf")
        self._prompt_seconds, self._slow_seconds = prompt_seconds, slow_seconds
        self._began = 0.0
        self._known = False
        self._looking: threading.Thread | None = None

    def ok(self) -> bool:
        """Return whether all is well, within a second."""
        with self._one:
            if self._looking is None and time.monotonic() >= self._until:
                self._began = time.monotonic()
                self._looking = threading.Thread(target=self._note, name="checks", daemon=True)
                self._looking.start()
            looking, began = self._looking, self._began
        if looking is not None:
            looking.join(self._prompt_seconds)
            if looking.is_alive() and time.monotonic() - began > self._slow_seconds:
                return False
        forgiven = time.monotonic() - self._well_at < self._forgiving_seconds
        return self._known and (not self._failing or forgiven) and self._takes()

    def _note(self) -> None:
        try:
            self._look()
            self._known = True
            if not self._failing:
                self._well_at = time.monotonic()
        finally:
            self._end_look()

    def _end_look(self) -> None:
        with self._one:
            self._looking = None
            self._until = time.monotonic() + self._kept_seconds

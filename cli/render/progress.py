"""The steps of a server's operation, collected by polling it, shown as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from common.story.labels import label
from common.story.text import Line, duration, how_far, one_line, seconds_between


@dataclass(frozen=True)
class Step:
    """One step: a task_state, or an event of the instance action."""

    key: str
    text: str
    at_seconds: float
    """When it began, since its action did; a state that is only seen: since the wait."""
    result: str | None = None
    """``Success`` or ``Error`` of an event; ``""`` of a state, which has none; None: running."""
    took_seconds: float | None = None
    host: str | None = None
    copied: Mapping[str, Any] | None = None
    """How far its copy is, while it runs; see ``common.story.text.how_far``."""

    @property
    def tenths(self) -> int:
        """How much of its copy is done, in whole tenths."""
        return int(self.copied["percent"]) // 10 if self.copied else 0


class Waits(Protocol):
    """A pause between two attempts; see ``cli.server.operation.Wait``."""

    @property
    def until(self) -> str:
        """When it is tried again, in words."""

    @property
    def why(self) -> str:
        """Why the last attempt failed."""

    @property
    def since(self) -> str | None:
        """When it failed, ISO 8601."""


class Seen(Protocol):
    """The result of one look at an operation; see ``cli.server.operation.Look``."""

    @property
    def began(self) -> str | None:
        """When the operation did, ISO 8601; None: its events are placed at the look."""

    @property
    def events(self) -> Sequence[Mapping[str, Any]]:
        """event, start_time, finish_time, result, host and progress of each."""

    @property
    def states(self) -> Sequence[tuple[str, str]] | None:
        """When each task_state began, and which; None: unknown."""

    @property
    def wait(self) -> Waits | None:
        """What it waits for, if it does."""


@dataclass(frozen=True)
class Progress:
    """All steps so far, in the order of their first appearance."""

    steps: tuple[Step, ...] = ()
    task_state: str | None = field(default=None)


def after(
    progress: Progress, elapsed_seconds: float, task_state: str | None, seen: Seen
) -> Progress:
    """Return the progress after one more look, ``elapsed_seconds`` after the first one.

    ``task_state`` is the server's own: it is used where the look doesn't have the states.
    """
    steps = {step.key: step for step in progress.steps}
    if seen.states is not None:
        for at, state in seen.states:
            key = f"state {at} {state}"
            steps[key] = Step(key, state, seconds_between(seen.began, at) or 0.0, "")
    elif task_state and task_state != progress.task_state:
        key = f"state {len(steps)} {task_state}"
        steps[key] = Step(key, task_state, elapsed_seconds, "")
    for event in sorted(seen.events, key=lambda e: str(e.get("start_time") or "")):
        name = str(event.get("event"))
        started, finished = event.get("start_time"), event.get("finish_time")
        key = f"event {name} {started}"
        offset = seconds_between(seen.began, started)
        at_seconds = elapsed_seconds if offset is None else offset
        known = steps.get(key) or Step(key, name, at_seconds)
        steps[key] = replace(
            known,
            result=event.get("result") if finished else None,
            took_seconds=seconds_between(started, finished),
            host=event.get("host") or None,
            copied=None if finished else event.get("progress"),
        )
    if seen.wait is not None:
        key = f"wait {seen.wait.until}"
        offset = seconds_between(seen.began, seen.wait.since)
        at_seconds = elapsed_seconds if offset is None else offset
        text = " ".join(filter(None, (one_line(seen.wait.why), f"({seen.wait.until})")))
        steps.setdefault(key, Step(key, text, at_seconds, ""))
    return Progress(tuple(steps.values()), task_state)


def news(before: Progress, now: Progress) -> list[Line]:
    """Return a line for each state that began and each event that ended between two looks.

    Also one for each event whose copy went on by a tenth.
    """
    known = {step.key: step for step in before.steps}
    return [step_line(step) for step in _in_time(now) if _is_news(known.get(step.key), step)]


def _is_news(before: Step | None, now: Step) -> bool:
    if now.result is None:
        return now.tenths > (before.tenths if before else 0)
    return before is None or before.result != now.result


_STYLES = {"Success": "green", "Error": "bold red"}


def step_line(step: Step) -> Line:
    """Return one step: when, what, how it ended, how long it took, where."""
    when = (f"{'+' + duration(step.at_seconds):>12}  ", "dim")
    if step.result == "":
        return when, (step.text, "bold yellow" if step.key.startswith("wait ") else "bold cyan")
    result = step.result or "…"
    how = how_far(step.copied) if step.copied else duration(step.took_seconds)
    return (
        when,
        (f"  {label(step.text):<34} ", ""),
        (f"{result:<8}", _STYLES.get(result, "yellow")),
        (f"{how:>12}", ""),
        (f"  {one_line(step.host)}" if step.host else "", "dim"),
    )


def all_lines(progress: Progress) -> list[Line]:
    """Return a line for each step, running ones too."""
    return [step_line(step) for step in _in_time(progress)]


def _in_time(progress: Progress) -> list[Step]:
    """Return the steps in order; a state precedes the step that began with it."""
    return sorted(progress.steps, key=lambda step: (step.at_seconds, step.result != ""))

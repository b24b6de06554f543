"""A flow as data: the stages of an action, and what becomes of it where they are left."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from common import clock
from common.messages.reports import Failure, Outcome
from common.states import OperationState, TaskState
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction


@dataclass(frozen=True)
class Work:
    """An operation that is worked on, as the record has it."""

    operation: Operation

    def at(self, name: str) -> Self:
        """Return the same at this stage or undo, which whatever commits for it writes along."""
        return dataclasses.replace(self, operation=dataclasses.replace(self.operation, stage=name))

    @property
    def shown(self) -> str | None:
        """What its resource shows of what is being done to it."""
        return None

    @property
    def has_resource(self) -> bool:
        """Whether its resource names it as the operation that works on it."""
        return True

    @property
    def unwinding(self) -> bool:
        """Whether it is on its way back, or past the point from which there is none."""
        return self.operation.state == OperationState.UNWINDING

    @property
    def ended(self) -> bool:
        """Whether the operation is at its end."""
        return self.operation.state in {OperationState.DONE, OperationState.FAILED}

    @property
    def late(self) -> bool:
        """Whether its time is over."""
        deadline = self.operation.deadline
        return deadline is None or deadline < clock.utcnow()


@dataclass(frozen=True)
class Task(Work):
    """An operation that is worked on, and the server that it is about."""

    server: Server
    fresh: bool = False
    """Nobody has worked on it before."""
    handed_over: bool = False
    """Its lease has just gone to the agent of its plan."""

    @property
    def shown(self) -> str | None:
        """What the server shows."""
        return self.server.task_state

    @property
    def has_resource(self) -> bool:
        """Whether the server is there, and names this operation."""
        return self.server.operation_id == self.operation.id and self.server.deleted_at is None


W = TypeVar("W", bound=Work)


@dataclass(frozen=True)
class Undo(Generic[W]):
    """What removes what one stage made, if it made it. It may run twice, so it looks first."""

    name: str
    do: Callable[[W], bool] | None = None
    """Returns whether all that is outside the database is gone; if not, an agent has the command,
    or it waits. None: nothing of it is outside."""
    heard: Callable[[W, Outcome], bool] | None = None
    """Where an agent does it: takes the agent's last word, and returns whether it is gone."""
    write: Callable[[Transaction, W, Failure | None], W] | None = None
    """Removes what is in the database, as the transaction that goes on to the next undo commits
    it; with what the agent says against it."""


@dataclass(frozen=True)
class Stage(Generic[W]):
    """One thing that is done, and committed as a whole. ``do`` may run twice, so it looks first.

    What commits it commits the name of the stage that follows. Where the resource shows another
    task_state than that stage's, as the release before moved it, or where nothing was decided that
    had to be written, the first stage that shows the task_state is reached.
    """

    name: str
    do: Callable[[W], W | None] | Callable[[W], None]
    """Returns the task as it was committed, for the next stage; None: it ended or waits, or an
    agent has the command."""
    heard: Callable[[W, Outcome], W | None] | Callable[[W, Outcome], None] | None = None
    """Where an agent does it: takes the agent's last word, and returns the same. None: the
    conductor does it."""
    shown: TaskState | None = None
    undo: Undo[W] | None = None
    """What removes what it made, once the operation unwinds. None: it made nothing."""
    final: bool = False
    """The point of no return is behind: neither time nor failure ends it, it is tried again."""


@dataclass(frozen=True)
class Table(Generic[W]):
    """The flow of an action."""

    stages: tuple[Stage[W], ...]
    lost: Callable[[W], None] | None
    """Another operation has the resource. None: this one takes none, and can't lose it."""
    late: Callable[[W], None] | None = None
    """Its time is over. None: every stage is final."""
    undone: Callable[[Transaction, W], None] | None = None
    """Ends the operation in the transaction of its last undo. None: it has none."""
    owns: bool = True
    """Whether it has the resource, which then names the operation."""
    taken: Callable[[W], bool] | None = None
    """Where it doesn't own the resource, and yet may lose it: whether it has."""
    over: Callable[[W], bool] | None = None
    """Of one that owns it: whether the resource's record says that the operation ended, though
    the operation was read before. None: where it shows nothing."""
    heard_after: Callable[[W, Outcome], None] | None = None
    """An agent's word on an operation that lost its resource, even at its end; None: as ``lost``.
    """
    load: Callable[[Transaction, Operation], W] | None = None
    """Reads what the operation is about. None: it is a server; see ``Task``."""

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages] + [undo.name for undo in self.undos]
        final = [stage.final for stage in self.stages]
        if len(set(names)) != len(names):
            raise ValueError(f"two stages or undos have one name: {names}")
        if final != sorted(final):
            raise ValueError("after the point of no return every stage is final")
        if any(stage.final and stage.undo for stage in self.stages):
            raise ValueError("what is final is not undone")
        if (self.late is None) != all(final) or (self.undone is None) != (not self.undos):
            raise ValueError("``late`` and ``undone`` say how each way that there is ends")

    @property
    def undos(self) -> tuple[Undo[W], ...]:
        """The undos of all stages, the last one first."""
        return tuple(stage.undo for stage in reversed(self.stages) if stage.undo is not None)

    def back(self, task: W) -> tuple[Undo[W], ...]:
        """Return what is still to be undone, in order; empty where it goes forward.

        Where no undo was committed, as the release before commits none, all is looked at, unless
        the point of no return may be behind.
        """
        if not task.unwinding:
            return ()
        undos, at = self.undos, task.operation.stage
        position = next((n for n, undo in enumerate(undos) if undo.name == at), None)
        if position is None:
            return () if self.stages[-1].final else undos
        return undos[position:]

    def reached(self, task: W) -> int | None:
        """Return the stage that the record says was reached; None: it says nothing of this flow.

        Of one that unwinds and isn't undone: from where it goes forward, as there is no return.
        """
        at, shown = task.operation.stage, task.shown if self.owns else None
        named = next((n for n, stage in enumerate(self.stages) if stage.name == at), None)
        if task.unwinding:
            last = len(self.stages) - 1
            return named if named is not None and self.stages[named].final else last
        if self.owns and (shown is None if self.over is None else self.over(task)):
            return None
        if named is not None and (not self.owns or self.stages[named].shown == shown):
            return named
        if not self.owns:
            return 0
        return next((n for n, stage in enumerate(self.stages) if stage.shown == shown), None)

    def heard_by(self, task: W) -> int | None:
        """Return the stage that the agent has: of those that show one task_state the last, where
        none is committed."""
        position = self.reached(task)
        if position is None or self.stages[position].name == task.operation.stage:
            return position
        shown = self.stages[position].shown
        return max(n for n, stage in enumerate(self.stages) if stage.shown == shown)

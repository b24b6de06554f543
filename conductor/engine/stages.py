"""A flow as data: the stages of an action, and what follows when they are left."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from common import clock
from common.messages.commands import Command
from common.messages.reports import Failure, Outcome
from common.resources.states import OperationState, TaskState
from conductor.store.records import Operation, Server
from conductor.store.transactions import Transaction


@dataclass(frozen=True)
class Work:
    """An operation in progress, by the record."""

    operation: Operation

    def at(self, name: str) -> Self:
        """Return the same at this stage or undo, which the next commit stores."""
        return dataclasses.replace(self, operation=dataclasses.replace(self.operation, stage=name))

    @property
    def shown(self) -> str | None:
        """Return the task_state that its resource shows."""
        return None

    @property
    def has_resource(self) -> bool:
        """Return whether its resource names it as its operation."""
        return True

    @property
    def unwinding(self) -> bool:
        """Return whether it unwinds, or is past the point of no return."""
        return self.operation.state == OperationState.UNWINDING

    @property
    def ended(self) -> bool:
        """Return whether the operation has ended."""
        return self.operation.state in {OperationState.DONE, OperationState.FAILED}

    @property
    def is_being_deleted(self) -> bool:
        """Return whether its resource is being removed, or is gone."""
        return False

    @property
    def overslept(self) -> bool:
        """Return whether its deadline passed while no conductor ran: its commands only look."""
        return self.operation.overslept

    def awake(self) -> Self:
        """Return the task without the mark that it overslept: its commands no longer only look."""
        return dataclasses.replace(
            self, operation=dataclasses.replace(self.operation, overslept=False)
        )

    @property
    def late(self) -> bool:
        """Return whether its deadline has passed."""
        deadline = self.operation.deadline
        return deadline is None or deadline < clock.utcnow()


@dataclass(frozen=True)
class Task(Work):
    """An operation in progress, and its server."""

    server: Server
    fresh: bool = False
    """The operation is new."""
    handed_over: bool = False
    """Its lease has just been passed to the agent of its plan."""

    @property
    def shown(self) -> str | None:
        """Return the server's task_state."""
        return self.server.task_state

    @property
    def has_resource(self) -> bool:
        """Return whether the server exists, and names this operation."""
        return self.server.operation_id == self.operation.id and self.server.deleted_at is None

    @property
    def is_being_deleted(self) -> bool:
        """Return whether the server is deleted, or a delete works on it."""
        return self.server.deleted_at is not None or self.shown == TaskState.DELETING


W = TypeVar("W", bound=Work)
#: of a command
Out = TypeVar("Out", bound=Outcome)
R = TypeVar("R")


def answer(
    command: type[Command[Out]], take: Callable[[W, Out], R]
) -> Callable[[W, Outcome], R | None]:
    """Return what takes an agent's outcome of this command; see ``only``."""
    return only(command.outcome(), take)


def only(kind: type[Out], take: Callable[[W, Out], R]) -> Callable[[W, Outcome], R | None]:
    """Return what takes outcomes of this class alone.

    An outcome of another class answers the command of the stage before, for a second time.
    """

    def take_it(task: W, outcome: Outcome) -> R | None:
        return take(task, outcome) if isinstance(outcome, kind) else None

    return take_it


@dataclass(frozen=True)
class Undo(Generic[W]):
    """Removes what one stage made, if it made it. It may run twice, so it looks first."""

    name: str
    do: Callable[[W], bool] | None = None
    """Returns whether all that the stage made outside the database is gone; if not, an agent
    removes it, or the operation waits. None: the stage makes nothing outside."""
    on_outcome: Callable[[W, Outcome], bool | None] | None = None
    """For an agent's undo: takes the outcome; returns whether what the stage made is gone."""
    write: Callable[[Transaction, W, Failure | None], W] | None = None
    """Removes what is in the database, in the transaction that commits the next undo; gets the
    agent's failure, if any."""


@dataclass(frozen=True)
class Stage(Generic[W]):
    """One part of a flow, committed as a whole. ``do`` may run twice, so it looks first.

    Its commit stores the name of the stage that follows, from which the operation continues. It
    continues from the first stage with the task_state that the resource shows if no stage was
    stored, as of an operation that has just begun, or if the stored one shows another task_state.
    """

    name: str
    do: Callable[[W], W | None] | Callable[[W], None]
    """Returns the task as committed, for the next stage; None: it ended or waits, or an agent
    has the command."""
    on_outcome: Callable[[W, Outcome], W | None] | None = None
    """For an agent's stage: takes the outcome, and returns the same. None: the conductor's
    stage."""
    shown: TaskState | None = None
    undo: Undo[W] | None = None
    """Removes what the stage made, once the operation unwinds. None: it made nothing."""
    final: bool = False
    """Past the point of no return: neither deadline nor failure ends it, it is repeated."""


@dataclass(frozen=True)
class Table(Generic[W]):
    """The flow of an action."""

    stages: tuple[Stage[W], ...]
    on_superseded: Callable[[W], None] | None
    """Called when another operation has taken the resource. None: this flow takes no resource."""
    on_deadline: Callable[[W], None] | None = None
    """Called when its deadline has passed. None: every stage is final."""
    undone: Callable[[Transaction, W], None] | None = None
    """Ends the operation in the transaction of its last undo. None: it has none."""
    owns: bool = True
    """Whether it takes the resource, which then names the operation."""
    was_superseded: Callable[[W], bool] | None = None
    """For a flow that takes no resource but may be superseded: returns whether it was."""
    has_finished: Callable[[W], bool] | None = None
    """For a flow that takes its resource: returns whether the resource's record shows that the
    operation ended after it was read. None: the record doesn't show that."""
    on_late_outcome: Callable[[W, Outcome], None] | None = None
    """Takes an outcome of an operation that lost its resource, even at its end; None: as
    ``on_superseded``."""
    on_already_closed: Callable[[W], None] | None = None
    """Called when another conductor has closed the operation while this one worked on it: reverts
    what this one did too late. None: it left nothing behind."""
    load: Callable[[Transaction, Operation], W] | None = None
    """Reads what the operation is about. None: it is a server; see ``Task``."""
    uncertain: Callable[[Transaction, W], None] | None = None
    """For an operation that overslept and was not seen done: writes that into the resource's
    record and changes nothing else, where ``on_deadline`` would remove something. None:
    ``on_deadline`` removes nothing itself (undos of such an operation only look)."""

    usable: bool = True
    """Whether a VM that an operation which overslept left half done can be used, once it is seen
    to run or to be stopped; else its server is in ERROR."""

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages] + [undo.name for undo in self.undos]
        final = [stage.final for stage in self.stages]
        if len(set(names)) != len(names):
            raise ValueError(f"two stages or undos have one name: {names}")
        if final != sorted(final):
            raise ValueError("after the point of no return every stage is final")
        if any(stage.final and stage.undo for stage in self.stages):
            raise ValueError("what is final is not undone")
        if (self.on_deadline is None) != all(final) or (self.undone is None) != (not self.undos):
            raise ValueError("``on_deadline`` and ``undone`` say how each way that there is ends")

    @property
    def undos(self) -> tuple[Undo[W], ...]:
        """Return the undos of all stages, the last one first."""
        return tuple(stage.undo for stage in reversed(self.stages) if stage.undo is not None)

    def of(self, task: W) -> Table[W]:
        """Return itself, as the flow has one case only; see ``conductor.engine.cases``."""
        return self

    def back(self, task: W) -> tuple[Undo[W], ...]:
        """Return what is still to be undone, in order; empty if it continues forward.

        If no undo was committed, as no stage with one was known to be reached, all are returned
        (each looks first), unless the point of no return may have been passed.
        """
        if not task.unwinding:
            return ()
        undos, at = self.undos, task.operation.stage
        position = next((n for n, undo in enumerate(undos) if undo.name == at), None)
        if position is None:
            return () if self.stages[-1].final else undos
        return undos[position:]

    def undos_from(self, task: W, after: Undo[W] | None = None) -> tuple[Undo[W], ...]:
        """Return the undos of a task that is to unwind, in order: of the stage reached, and of
        those before it.

        If no stage is known all are returned. ``after``: those after this one only.
        """
        if after is not None:
            names = [undo.name for undo in self.undos]
            return self.undos[names.index(after.name) + 1 :]
        if task.unwinding:
            return self.back(task)
        position = self.reached(task)
        made = self.stages if position is None else self.stages[: position + 1]
        return tuple(stage.undo for stage in reversed(made) if stage.undo is not None)

    def reached(self, task: W) -> int | None:
        """Return the stage reached according to the record; None: it belongs to another flow.

        If it unwinds without undos: the stage to continue from, as there is no return.
        """
        at, shown = task.operation.stage, task.shown if self.owns else None
        named = next((n for n, stage in enumerate(self.stages) if stage.name == at), None)
        if task.unwinding:
            last = len(self.stages) - 1
            return named if named is not None and self.stages[named].final else last
        if self.owns and (shown is None if self.has_finished is None else self.has_finished(task)):
            return None
        if named is not None and (not self.owns or self.stages[named].shown == shown):
            return named
        if not self.owns:
            return 0
        return next((n for n, stage in enumerate(self.stages) if stage.shown == shown), None)

    def is_past_return(self, task: W) -> bool:
        """Return whether the stage reached is final: no deadline ends the task."""
        if self.on_deadline is None:
            return True
        if self.back(task):
            return False
        position = self.reached(task)
        return position is not None and self.stages[position].final

    def agent_stage(self, task: W) -> int | None:
        """Return the agent's stage: if none is committed, the last with the task_state."""
        position = self.reached(task)
        if position is None or self.stages[position].name == task.operation.stage:
            return position
        shown = self.stages[position].shown
        return max(n for n, stage in enumerate(self.stages) if stage.shown == shown)

"""A flow as data: the stages of an action, and what becomes of it where they are left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from common import clock
from common.messages.reports import Outcome
from common.states import OperationState, TaskState
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction


@dataclass(frozen=True)
class Work:
    """An operation that is worked on, as the record has it."""

    operation: Operation

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
class Stage(Generic[W]):
    """One thing that is done, and committed as a whole. ``do`` may run twice, so it looks first.

    It is reached where the resource shows its task_state; stages that show the same one are
    repeated from the first of them.
    """

    name: str
    do: Callable[[W], W | None] | Callable[[W], None]
    """Returns the task as it was committed, for the next stage; None: it ended or waits, or an
    agent has the command."""
    heard: Callable[[W, Outcome], None] | None = None
    """Where an agent does it: takes the agent's last word. None: the conductor does it."""
    shown: TaskState | None = None
    undo: Stage[W] | None = None
    """What removes all that was made up to here, once the operation unwinds."""
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

    @property
    def undo(self) -> Stage[W] | None:
        """What undoes the operation; None: it only goes forward."""
        return next((stage.undo for stage in self.stages if stage.undo is not None), None)

    def reached(self, task: W) -> int | None:
        """The stage that the record says was reached; None where it says nothing of this flow."""
        if not self.owns:
            return 0
        ended = task.shown is None if self.over is None else self.over(task)
        if ended:
            return None
        shown = task.shown
        return next((n for n, stage in enumerate(self.stages) if stage.shown == shown), None)

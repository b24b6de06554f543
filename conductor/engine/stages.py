"""A flow as data: the stages of an action, and what becomes of it where they are left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from common import clock
from common.messages.reports import Outcome
from common.states import OperationState, TaskState
from conductor.store.operations import Operation
from conductor.store.servers import Server


@dataclass(frozen=True)
class Task:
    """An operation that is worked on, and the server that it is about, as the record has both."""

    operation: Operation
    server: Server
    fresh: bool = False
    """Nobody has worked on it before."""
    handed_over: bool = False
    """Its lease has just gone to the agent of its plan."""

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


def server_is_idle(task: Task) -> bool:
    """Whether nothing is being done to the server: the operation was read before it ended."""
    return task.server.task_state is None


@dataclass(frozen=True)
class Stage:
    """One thing that is done, and committed as a whole. ``do`` may run twice, so it looks first.

    It is reached where the server shows its task_state; stages that show the same one are
    repeated from the first of them.
    """

    name: str
    do: Callable[[Task], Task | None] | Callable[[Task], None]
    """Returns the task as it was committed, for the next stage; None: it ended or waits, or an
    agent has the command."""
    heard: Callable[[Task, Outcome], None] | None = None
    """Where an agent does it: takes the agent's last word. None: the conductor does it."""
    shown: TaskState | None = None
    undo: Stage | None = None
    """What removes all that was made up to here, once the operation unwinds."""
    final: bool = False
    """The point of no return is behind: neither time nor failure ends it, it is tried again."""


@dataclass(frozen=True)
class Table:
    """The flow of an action."""

    stages: tuple[Stage, ...]
    lost: Callable[[Task], None] | None
    """Another operation has the server. None: this one takes no server, and can't lose it."""
    late: Callable[[Task], None] | None = None
    """Its time is over. None: every stage is final."""
    owns: bool = True
    """Whether it has the server, which then names the operation."""
    taken: Callable[[Task], bool] | None = None
    """Where it doesn't own the server, and yet may lose it: whether it has."""
    over: Callable[[Task], bool] = server_is_idle
    """Of one that owns it: whether the server's record says that the operation ended."""
    heard_after: Callable[[Task, Outcome], None] | None = None
    """An agent's word on an operation that lost its server, even at its end; None: as ``lost``."""

    @property
    def undo(self) -> Stage | None:
        """What undoes the operation; None: it only goes forward."""
        return next((stage.undo for stage in self.stages if stage.undo is not None), None)

    def reached(self, task: Task) -> int | None:
        """The stage that the record says was reached; None where it says nothing of this flow."""
        if not self.owns:
            return 0
        shown = task.server.task_state
        return next((n for n, stage in enumerate(self.stages) if stage.shown == shown), None)

"""Closes operations that agents have carried out, many of them in one transaction.

Operations that end at the same time share the transaction, which also stores the agents' reports.
An operation whose record has changed since it was read is closed in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from common.messages.commands import Command
from common.resources.states import OperationState, VmState
from conductor.engine.stages import Out, Task
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import transitions
from conductor.store.ledger.transitions import Move
from conductor.store.transactions import Transaction


@dataclass(frozen=True)
class Ended(Generic[Out]):
    """An operation that its agent has carried out."""

    task: Task
    outcome: Out


@dataclass(frozen=True)
class Ending(Generic[Out]):
    """The end of an action."""

    command: type[Command[Out]]
    """What its agent has carried out."""
    expected: Callable[[Ended[Out]], bool]
    """Returns whether an outcome ends an operation that has its server this way."""
    write: Callable[[Transaction, Sequence[Ended[Out]]], None]
    """Writes the ends of several. Raises StaleTransition if one can't end this way any more."""
    release: Callable[[Sequence[Ended[Out]]], None] | None = None
    """Releases elsewhere, before the end is written. Raises Unavailable."""

    def of(self, ended: Ended[Any]) -> bool:
        """Return whether the operation ends this way, by the record."""
        task = ended.task
        its = isinstance(ended.outcome, self.command.outcome())
        return its and task.has_resource and not task.ended and self.expected(ended)


def done(connection: Transaction, moves: Sequence[Move]) -> None:
    """Move servers to their new states, and end their operations.

    Raises StaleTransition if one has changed since it was read; then nothing must be committed.
    """
    transitions.move_all(connection, moves)
    ledger.close_all(connection, [move.operation_id for move in moves], OperationState.DONE)


def move(ended: Ended[Any], vm_state: VmState, **values: object) -> Move:
    """Return the server's transition; it has no operation any more."""
    task = ended.task
    return Move(task.server, task.operation.id, vm_state, None, values)

"""How an agent's success ends an operation, where all of it is written in one transaction.

Operations that end so at one time share the transaction, which also keeps the agents' reports. One
that can't be written so, since its record moved on meanwhile, ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.messages.reports import Outcome
from common.states import OperationState, VmState
from conductor.engine.stages import Task
from conductor.store import operations as ledger
from conductor.store import transitions
from conductor.store.transactions import Transaction
from conductor.store.transitions import Move


@dataclass(frozen=True)
class Ended:
    """An operation that its agent has carried out."""

    task: Task
    outcome: Outcome


@dataclass(frozen=True)
class Ending:
    """The end of an action."""

    expected: Callable[[Ended], bool]
    """Whether the outcome ends so an operation that has its server and is not at its end."""
    write: Callable[[Transaction, Sequence[Ended]], None]
    """Writes the ends of several. Raises StaleTransition where one can't end so any more."""
    release: Callable[[Sequence[Ended]], None] | None = None
    """What is given back elsewhere before it is written. Raises Unavailable."""

    def of(self, ended: Ended) -> bool:
        """Return whether the operation ends so, as the record has it."""
        task = ended.task
        return task.has_resource and not task.ended and self.expected(ended)


def done(connection: Transaction, moves: Sequence[Move]) -> None:
    """Move servers to what they became, and end their operations.

    Raises StaleTransition, with nothing to be kept, when one is not as it was read.
    """
    transitions.move_all(connection, moves)
    ledger.close_all(connection, [move.operation_id for move in moves], OperationState.DONE)


def move(ended: Ended, vm_state: VmState, **values: object) -> Move:
    """Return what its server becomes; nothing is done to it any more."""
    task = ended.task
    return Move(task.server, task.operation.id, vm_state, None, values)

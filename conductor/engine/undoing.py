"""Unwinds: the undo of each stage that was reached, the last first, each one committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from common.messages.reports import Category, Failure, Outcome
from common.metrics import stages as measured
from conductor.engine.stages import Undo, W
from conductor.store.ledger import leases
from conductor.store.transactions import Store, Transaction


class Undoing(Generic[W]):
    """Unwinds operations of one flow, from whichever undo is committed.

    An undo without anything outside the database is committed with the one before.
    """

    def __init__(self, store: Store, undone: Callable[[Transaction, W], None]) -> None:
        self._store, self._undone = store, undone

    def undo_rest(self, task: W, undos: Sequence[Undo[W]]) -> None:
        """Undo what is left, until it ends, waits, or an agent has the command."""
        while undos:
            do, name = undos[0].do, undos[0].name
            if do is not None:
                with measured.stage(task.operation.action, name) as result:
                    result.went_on = do(task.at(name))
                if not result.went_on:
                    return
            task, undos = self._commit(task, undos, None)

    def on_outcome(self, task: W, undos: Sequence[Undo[W]], outcome: Outcome) -> None:
        """Take the agent's outcome of the first undo; continue once that undo is done.

        It counts as done if the VM was seen nowhere, as nothing can be put back then. The record
        of where VMs are shows what became of it.
        """
        take = undos[0].on_outcome
        if take is not None and (_is_vanished(outcome) or take(task, outcome)):
            self.undo_rest(*self._commit(task, undos, outcome.failure))

    def _commit(
        self, task: W, undos: Sequence[Undo[W]], failure: Failure | None
    ) -> tuple[W, Sequence[Undo[W]]]:
        """Commit the first undo and those after it that change only the database; return the rest.

        Raises StaleTransition if another process has continued the operation.
        """
        outside = (n for n, undo in enumerate(undos) if n and undo.do is not None)
        count = next(outside, len(undos))
        left = undos[count:]

        def work(connection: Transaction) -> W:
            now = task
            for undo in undos[:count]:
                if undo.write is not None:
                    now = undo.write(connection, now, failure)
            operation, plan = task.operation, now.operation.plan
            if left:
                leases.reach(connection, operation, plan, left[0].name)
                return now.at(left[0].name)
            # Another outcome may have ended it since it was read.
            leases.reach(connection, operation, plan, str(operation.stage))
            self._undone(connection, now)
            return now

        return self._store.run(work), left


def _is_vanished(outcome: Outcome) -> bool:
    return outcome.failure is not None and outcome.failure.category is Category.VANISHED

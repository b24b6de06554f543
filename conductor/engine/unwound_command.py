"""Flows of one command which, where they fail, have something to undo."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from common.messages.reports import Category, Failure
from common.resources.states import OperationState
from conductor.engine import close, unwinding
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Out, W
from conductor.store.ledger import operations as ledger
from conductor.store.transactions import Transaction


class UnwoundCommand(OneCommand[W, Out]):
    """As ``OneCommand``. A stage of it has an undo, and ``write_failed`` follows the last one."""

    def fail(self, task: W, failure: Failure, outcome: Out | None = None) -> None:
        """Begin to unwind."""
        unwinding.begin(self._cloud, self.table(), task, failure)

    def send_back(self, task: W) -> bool:
        """Send the command of an undo; return that it isn't undone yet. Without agent it waits."""
        return close.later_unless(self._cloud, task, self.send(task))

    def write_undone(self, connection: Transaction, task: W, row: Any) -> None:
        """Close the operation, by default as failed."""
        operation = task.operation
        ledger.close(connection, operation.id, OperationState.FAILED, operation.message)
        failure = Failure(Category.UNKNOWN_OUTCOME, operation.message or "")
        seen = dataclasses.replace(self.nothing_seen(), failure=failure)
        self.write_failed(connection, End(task, row, seen))

    def undone(self) -> Callable[[Transaction, W], None]:
        """Return what locks the record and closes the operation, once."""

        def end(connection: Transaction, task: W) -> None:
            row = self.lock(connection, task)
            if not close.has_ended(connection, task.operation):
                self.write_undone(connection, task, row)

        return end

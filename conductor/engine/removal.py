"""Flows that remove something: past the point of no return, so repeated until it was seen gone."""

from __future__ import annotations

from typing import ClassVar

from common import clock
from common.messages.reports import Category, Failure, Removed
from conductor.engine import close
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import W
from conductor.store.ledger import operations as ledger
from conductor.store.transactions import Transaction

#: seconds between two tries of what can't be removed, and their number: about a week
AGAIN_SECONDS, MOST_TRIES = 600.0, 1000


class Removal(OneCommand[W, Removed]):
    """A removal. It is given up where what was found may not be touched, or after a week."""

    quick: ClassVar[bool] = True
    """Whether the first tries come after the back-off, as often as is configured."""

    def succeeded(self, task: W, outcome: Removed) -> bool:
        """Return whether it was seen gone."""
        return outcome.gone

    def is_hopeless(self, task: W, failure: Failure) -> bool:
        """Return whether another try can't help."""
        return failure.category is Category.PROTECTED or task.operation.attempt >= MOST_TRIES

    def write_retry(self, connection: Transaction, task: W, failure: Failure) -> None:
        """Write why it is still there, in the transaction that begins the next attempt."""

    def retry(self, task: W, failure: Failure) -> bool:
        """Begin the next attempt unless it is hopeless; return whether."""
        if self.is_hopeless(task, failure):
            return False
        operation, options = task.operation, self._cloud.conf.conductor
        quick = self.quick and operation.attempt <= options.max_waits

        def also(connection: Transaction) -> None:
            self.write_retry(connection, task, failure)
            until = clock.after(AGAIN_SECONDS + options.action_timeout_seconds)
            ledger.save(connection, operation.id, deadline=until)

        pause = None if quick else AGAIN_SECONDS
        close.again(self._cloud, operation, failure, also, pause)
        return True

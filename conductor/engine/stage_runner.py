"""Runs the table of any flow: takes over, continues, takes outcomes, and unwinds."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from common import clock
from common.failures import passes
from common.log import logger
from common.messages.reports import Failure, Outcome
from common.metrics import stages as measured
from conductor.engine import overslept
from conductor.engine.cases import Cases
from conductor.engine.stages import Stage, Table, Task, Work
from conductor.engine.undoing import Undoing
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.servers import servers
from conductor.store.transactions import Store, Transaction

LOG = logger(__name__)

#: how old a record may be that is not read again
JUST_BEGUN = datetime.timedelta(seconds=2)


class StageRunner:
    """The runner of all operations, after whatever crash.

    With cases, the table is that of the operation's plan as committed; it is chosen again after
    each stage, which may have decided the case.
    """

    def __init__(
        self, store: Store, table: Table[Any] | Cases[Any], name: str = "conductor"
    ) -> None:
        """``name`` is the conductor's."""
        self._store, self.table, self._name = store, table, name

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Continue from the committed stage, until it ends, waits, or an agent has it."""
        task = self._load(operation, fresh=fresh)
        table = self.table.of(task)
        if task.ended:
            return
        if _taken(table, task):
            _lose(table, task)
            return
        if task.overslept and table.is_past_return(task):
            task = task.awake()
        if back := table.back(task):
            if task.overslept and task.late:
                overslept.leave(self._store, table, task, overslept.unseen(task))
            else:
                self._undoing(table).go_on(task, back)
            return
        position = table.reached(task)
        if position is not None:
            self._go_on(table, task, position)

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """Take the agent's outcome of its stage or undo."""
        task = self._load(operation)
        table = self.table.of(task)
        if _taken(table, task):
            if table.on_late_outcome is not None:
                table.on_late_outcome(task, outcome)
            elif not task.ended:
                _lose(table, task)
            return
        if task.ended:
            return
        if task.overslept and table.is_past_return(task):
            task = task.awake()
        if task.overslept and not (outcome.ok or outcome.gone):
            self._not_seen(table, task, outcome)
            return
        if back := table.back(task):
            self._undoing(table).on_outcome(task, back, outcome)
            return
        position = table.heard_by(task)
        take = None if position is None else table.stages[position].on_outcome
        following = None if take is None else take(task, outcome)
        if position is not None and following is not None:
            self._go_on(table, following, position + 1)

    def _go_on(self, table: Table[Any], task: Work, position: int) -> None:
        while position < len(table.stages):
            stage = table.stages[position]
            task = task.at(stage.name)
            if stage.final:
                task = task.awake()
            if (
                table.on_deadline is not None
                and not stage.final
                and self._ends_late(table, task, stage)
            ):
                return
            with measured.stage(task.operation.action, stage.name) as result:
                following = stage.do(task)
                result.went_on = following is not None
            if following is None:
                return
            task, table = following, self.table.of(following)
            position = [one.name for one in table.stages].index(stage.name) + 1

    def _ends_late(self, table: Table[Any], task: Work, stage: Stage[Any]) -> bool:
        """End the task if its deadline has passed; return whether.

        If it passed while no conductor ran, an agent looks first: what its stage was to make may
        be there, and be in use.
        """
        if not task.overslept:
            if not task.late:
                return False
            if self._store.run(lambda c: overslept.woke(c, self._name, task.operation)):
                # Its thread was frozen. The next look takes it up as what it is now.
                return True
        elif stage.on_outcome is not None and not task.late:
            return False
        self._give_up(table, task)
        return True

    def _not_seen(self, table: Table[Any], task: Work, outcome: Outcome) -> None:
        """Take an outcome that says that a task which overslept isn't done: nothing was changed.

        It is looked at again where the look failed.
        """
        failure = outcome.failure or overslept.unseen(task)
        if passes(failure) and not task.late:
            overslept.again(self._store, task.operation, failure)
        elif table.back(task):
            overslept.leave(self._store, table, task, failure, outcome.power_state)
        else:
            self._give_up(table, task, failure)

    def _give_up(self, table: Table[Any], task: Work, failure: Failure | None = None) -> None:
        if task.overslept and table.uncertain is not None:
            overslept.leave(self._store, table, task, failure or overslept.unseen(task))
        elif table.on_deadline is not None:
            table.on_deadline(task)

    def overtaken(self, operation: Operation) -> None:
        """Unwind, if another operation has the server now.

        Otherwise another conductor continues this very one: our lease had run out. What is
        recorded counts: a stage may have been committed since the operation was read.
        """
        with self._store.read() as connection:
            recorded = ledger.get(connection, operation.id)
        task = self._load(recorded or operation)
        table = self.table.of(task)
        if _taken(table, task) or (not table.owns and not task.unwinding):
            _lose(table, task)
        elif task.ended and table.on_already_closed is not None:
            table.on_already_closed(task)

    def may_undo(self, operation: Operation) -> bool:
        """Return whether its agent may undo what it made: none other decides about the VM.

        One that removes the VM with the server does not mind.
        """
        task = self._load(operation)
        return not task.ended and (task.is_being_deleted or not _taken(self.table.of(task), task))

    def _load(self, operation: Operation, *, fresh: bool = False) -> Work:
        if fresh and operation.begun_on is not None and _just_begun(operation):
            # Whoever has taken it since makes the first commit fail: no agent knows it before.
            return Task(dataclasses.replace(operation, begun_on=None), operation.begun_on, fresh)
        with self._store.read() as connection:
            if self.table.load is not None:
                loaded: Work = self.table.load(connection, operation)
                return loaded
            return Task(operation, servers.get(connection, operation.server_uuid), fresh)

    def _undoing(self, table: Table[Any]) -> Undoing[Any]:
        return Undoing(self._store, table.undone or _never)


def _taken(table: Table[Any], task: Work) -> bool:
    if table.owns:
        return not task.has_resource
    return table.was_superseded is not None and not task.unwinding and table.was_superseded(task)


def _lose(table: Table[Any], task: Work) -> None:
    if table.on_superseded is not None:
        table.on_superseded(task)


def _just_begun(operation: Operation) -> bool:
    """Return whether it has not waited long for a thread: its server may be renamed meanwhile."""
    return clock.utcnow() - operation.started_at < JUST_BEGUN


def _never(_: Transaction, task: Work) -> None:
    """Raise: a table without undos is never undone."""
    raise ValueError(f"operation {task.operation.id} has nothing to undo")

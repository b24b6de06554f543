"""Runs the table of any flow: takes over, continues, takes outcomes, and unwinds."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from common import clock
from common.failures import passes
from common.log import logger
from common.messages.reports import Failure, Outcome, Removed, VmSeen
from common.metrics import stages as measured
from common.resources.states import PowerState
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
    """Runs operations of one action from the stage that is committed, after any crash.

    An action may have several tables, its cases. The committed plan says which one applies; as a
    stage may decide that, the table is chosen again after each stage.
    """

    def __init__(
        self, store: Store, table: Table[Any] | Cases[Any], name: str = "conductor"
    ) -> None:
        """``name`` is the conductor's."""
        self._store, self.table, self._name = store, table, name

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Continue from the committed stage until the operation ends, waits, or is an agent's."""
        task = self._load(operation, fresh=fresh)
        table = self.table.of(task)
        if task.ended:
            return
        if _is_superseded(table, task):
            _supersede(table, task)
            return
        if task.overslept and table.is_past_return(task):
            task = task.awake()
        if back := table.back(task):
            if task.overslept and task.late:
                overslept.leave(self._store, table, task, overslept.unseen(task))
            else:
                self._undoing(table).undo_rest(task, back)
            return
        position = table.reached(task)
        if position is not None:
            self._run_stages(table, task, position)

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """Take the agent's outcome of its stage or undo."""
        task = self._load(operation)
        table = self.table.of(task)
        if _is_superseded(table, task):
            if table.on_late_outcome is not None:
                table.on_late_outcome(task, outcome)
            elif not task.ended:
                _supersede(table, task)
            return
        if task.ended:
            return
        if task.overslept and table.is_past_return(task):
            task = task.awake()
        gone = isinstance(outcome, Removed) and outcome.gone
        if task.overslept and not (outcome.ok or gone):
            self._not_seen(table, task, outcome)
            return
        if back := table.back(task):
            self._undoing(table).on_outcome(task, back, outcome)
            return
        position = table.agent_stage(task)
        take = None if position is None else table.stages[position].on_outcome
        following = None if take is None else take(task, outcome)
        if position is not None and following is not None:
            self._run_stages(table, following, position + 1)

    def _run_stages(self, table: Table[Any], task: Work, position: int) -> None:
        while position < len(table.stages):
            stage = table.stages[position]
            task = task.at(stage.name)
            if stage.final:
                task = task.awake()
            if (
                table.on_deadline is not None
                and not stage.final
                and self._ended_late(table, task, stage)
            ):
                return
            with measured.stage(task.operation.action, stage.name) as result:
                following = stage.do(task)
                result.went_on = following is not None
            if following is None:
                return
            task, table = following, self.table.of(following)
            position = [one.name for one in table.stages].index(stage.name) + 1

    def _ended_late(self, table: Table[Any], task: Work, stage: Stage[Any]) -> bool:
        """End the task if its deadline has passed; return whether.

        If the deadline passed while no conductor ran, an agent looks first: what its stage makes
        may exist by now, and be in use.
        """
        if not task.overslept:
            if not task.late:
                return False
            if self._store.run(lambda c: overslept.woke(c, self._name, task.operation)):
                # This thread was frozen. The next look takes the operation up as overslept.
                return True
        elif stage.on_outcome is not None and not task.late:
            return False
        self._give_up(table, task)
        return True

    def _not_seen(self, table: Table[Any], task: Work, outcome: Outcome) -> None:
        """Take the outcome of a look, which changed nothing and did not see the task done.

        If the look itself failed another one follows.
        """
        failure = outcome.failure or overslept.unseen(task)
        if passes(failure) and not task.late:
            overslept.again(self._store, task.operation, failure)
        elif table.back(task):
            seen = outcome.power_state if isinstance(outcome, VmSeen) else PowerState.NOSTATE
            overslept.leave(self._store, table, task, failure, seen)
        else:
            self._give_up(table, task, failure)

    def _give_up(self, table: Table[Any], task: Work, failure: Failure | None = None) -> None:
        if task.overslept and table.uncertain is not None:
            overslept.leave(self._store, table, task, failure or overslept.unseen(task))
        elif table.on_deadline is not None:
            table.on_deadline(task)

    def overtaken(self, operation: Operation) -> None:
        """Unwind if another operation has taken the server.

        If none has, our lease had run out and another conductor continues this operation. Its
        record is read again first, as a stage may have been committed since it was read.
        """
        with self._store.read() as connection:
            recorded = ledger.get(connection, operation.id)
        task = self._load(recorded or operation)
        table = self.table.of(task)
        if _is_superseded(table, task) or (not table.owns and not task.unwinding):
            _supersede(table, task)
        elif task.ended and table.on_already_closed is not None:
            table.on_already_closed(task)

    def may_undo(self, operation: Operation) -> bool:
        """Return whether its agent may undo what it made: no other operation decides about the VM.

        A delete removes the VM anyway, so it always may.
        """
        task = self._load(operation)
        return not task.ended and (
            task.is_being_deleted or not _is_superseded(self.table.of(task), task)
        )

    def _load(self, operation: Operation, *, fresh: bool = False) -> Work:
        if fresh and operation.begun_on is not None and _just_begun(operation):
            # If another process has taken it since, the first commit fails, before any agent call.
            return Task(dataclasses.replace(operation, begun_on=None), operation.begun_on, fresh)
        with self._store.read() as connection:
            if self.table.load is not None:
                loaded: Work = self.table.load(connection, operation)
                return loaded
            return Task(operation, servers.get(connection, operation.server_uuid), fresh)

    def _undoing(self, table: Table[Any]) -> Undoing[Any]:
        return Undoing(self._store, table.undone or _never)


def _is_superseded(table: Table[Any], task: Work) -> bool:
    if table.owns:
        return not task.has_resource
    return table.was_superseded is not None and not task.unwinding and table.was_superseded(task)


def _supersede(table: Table[Any], task: Work) -> None:
    if table.on_superseded is not None:
        table.on_superseded(task)


def _just_begun(operation: Operation) -> bool:
    """Return whether it got a thread soon: the longer it waits, the staler its server's record."""
    return clock.utcnow() - operation.started_at < JUST_BEGUN


def _never(_: Transaction, task: Work) -> None:
    """Raise: a table without undos is never undone."""
    raise ValueError(f"operation {task.operation.id} has nothing to undo")

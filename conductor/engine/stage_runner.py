"""Runs the table of any flow: takes up, goes on, hears agents, and steps back."""

from __future__ import annotations

from typing import Any

from common.log import logger
from common.messages.reports import Outcome
from conductor.engine.stages import Stage, Table, Task, Work
from conductor.store import servers
from conductor.store.operations import Operation
from conductor.store.transactions import Store

LOG = logger(__name__)


class StageRunner:
    """The one way that operations go, whoever takes them up and after whatever crash."""

    def __init__(self, store: Store, table: Table[Any]) -> None:
        self._store, self.table = store, table

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Go on from the stage that is committed, until it ends, waits, or an agent has it."""
        task = self._load(operation, fresh=fresh)
        if task.ended:
            return
        if self._taken(task):
            self._lose(task)
            return
        if task.unwinding:
            self._back(task).do(task)
            return
        position = self._position(task)
        if position is None:
            return
        stages = self.table.stages[position:]
        if task.late and self.table.late is not None and not stages[0].final:
            self.table.late(task)
            return
        for stage in stages:
            following = stage.do(task)
            if following is None:
                return
            task = following

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """Take the agent's last word on the stage that it was given."""
        task = self._load(operation)
        if self._taken(task):
            if self.table.heard_after is not None:
                self.table.heard_after(task, outcome)
            elif not task.ended:
                self._lose(task)
            return
        if task.ended:
            return
        position = self._position(task)
        if task.unwinding:
            stage = self._back(task)
        elif position is not None:
            stage = self.table.stages[position]
            # Of stages that show the same task_state the agent has the last one.
            shown = [one for one in self.table.stages if one.shown == stage.shown]
            stage = shown[-1]
        else:
            return
        if stage.heard is not None:
            stage.heard(task, outcome)

    def overtaken(self, operation: Operation) -> None:
        """Step back, where it is another operation that has the server now.

        Else somebody else goes on with this very one: our lease had run out.
        """
        task = self._load(operation)
        if self._taken(task) or (not self.table.owns and not task.unwinding):
            self._lose(task)

    def _load(self, operation: Operation, *, fresh: bool = False) -> Work:
        with self._store.read() as connection:
            if self.table.load is not None:
                loaded: Work = self.table.load(connection, operation)
                return loaded
            return Task(operation, servers.get(connection, operation.server_uuid), fresh)

    def _taken(self, task: Work) -> bool:
        if self.table.owns:
            return not task.has_resource
        taken = self.table.taken
        return taken is not None and not task.unwinding and taken(task)

    def _lose(self, task: Work) -> None:
        if self.table.lost is not None:
            self.table.lost(task)

    def _back(self, task: Work) -> Stage[Any]:
        """The way back; past the point of no return it is the last stage, forward."""
        return self.table.undo or self.table.stages[-1]

    def _position(self, task: Work) -> int | None:
        return self.table.reached(task)

"""Flows of one command to a server's agent, which keep the VM."""

from __future__ import annotations

import dataclasses
import functools
from typing import TypeVar

from common import clock
from common.failures import passes
from common.messages.commands import Placed
from common.messages.reports import Failure, VmSeen
from common.resources.states import ACTIONS, PowerState, VmState, found_well
from conductor.cloud import Cloud, backoff
from conductor.engine import close
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Out, Stage, Table, Task
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.servers import servers
from conductor.store.transactions import Transaction


class OfServer(OneCommand[Task, Out]):
    """A flow of one command about a server, whose state doesn't change."""

    def load(self, connection: Transaction, operation: Operation) -> Task:
        """Read the server."""
        return Task(operation, servers.get(connection, operation.server_uuid))

    def too_late(self, task: Task) -> Failure:
        """Return the failure at the deadline, with the host."""
        return dataclasses.replace(super().too_late(task), host=self.host(task))


S = TypeVar("S", bound=VmSeen)


class ServerCommand(OfServer[S]):
    """A flow of one command that takes the server; its states are those of the action's table.

    If it fails the server's state is that of the table, or as its VM was seen, else the old one.
    The fault is the operation's.
    """

    def __init__(self, cloud: Cloud, action: str) -> None:
        super().__init__(cloud)
        self.late = f"The {action} did not end in time."
        (self._shown,) = ACTIONS[action].walk

    def table(self) -> Table[Task]:
        """Return the flow, which ends as overtaken if another operation has the server."""
        return Table(
            self.stages(),
            on_superseded=functools.partial(close.overtaken, self._cloud),
            on_deadline=self.on_deadline,
            undone=self.undone(),
        )

    def stages(self) -> tuple[Stage[Task], ...]:
        """Return the one stage, in which the server shows the action's task_state."""
        return (Stage(self.stage, self.do, self.takes(), self._shown),)

    def host(self, task: Task) -> str:
        """Return the server's."""
        return str(task.server.host)

    def where(self, task: Task) -> Placed:
        """Return where the server's VM is."""
        server = task.server
        node, vmid = server.node or "", server.vmid or 0
        return Placed(str(server.host), server.cluster or "", node, vmid)

    def on_no_agent(self, task: Task) -> None:
        """Fail at once: the agent was there when the action was accepted."""
        self.fail(task, self.silent(task))

    def retry(self, task: Task, failure: Failure) -> bool:
        """Begin a new attempt, if waiting may help, at the deadline at the latest.

        The deadline then ends it with what it waited for.
        """
        operation, most = task.operation, self._cloud.conf.conductor.max_waits
        hopeless = failure.category in (self.hopeless or ()) or not passes(failure)
        if hopeless or operation.attempt > most:
            return False
        pause = backoff(operation.attempt)
        if operation.deadline is not None:
            pause = min(pause, max(0.0, (operation.deadline - clock.utcnow()).total_seconds()))

        def also(connection: Transaction) -> None:
            ledger.save(connection, operation.id, message=failure.message)

        close.again(self._cloud, operation, failure, also, pause)
        return True

    def on_success(self, task: Task, outcome: S) -> None:
        """End with the server in the action's state, and its VM as it was seen."""
        after = ACTIONS[task.operation.action].done or VmState(task.server.vm_state)
        close.done(self._cloud, task, after, power_state=outcome.power_state)

    def fail(self, task: Task, failure: Failure, outcome: S | None = None) -> None:
        """End with the server in the action's state after a failure."""
        after = ACTIONS[task.operation.action].failed or VmState(task.server.vm_state)
        seen = PowerState.NOSTATE if outcome is None else outcome.power_state
        if seen == PowerState.NOSTATE:
            close.failed(self._cloud, task, failure, after)
        else:
            well = found_well(after, seen)
            close.failed(self._cloud, task, failure, well, power_state=seen)
        close.log_failed(task.operation, failure)

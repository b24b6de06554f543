"""What attaching and detaching have in common, of interfaces and of volumes."""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, ClassVar

from common.context import RequestContext
from common.errors import Conflict
from common.failures import Verdict, verdict_of
from common.messages.commands import Placed
from common.messages.reports import Category, Failure, Outcome
from common.resources.states import OperationState
from conductor.cloud import Cloud, failure_of
from conductor.engine import close, start
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.engine.start import HandedOver
from conductor.engine.unwound_command import UnwoundCommand
from conductor.plans import Place, Plan
from conductor.servers.move import move_command
from conductor.servers.server_command import OfServer, S
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction

#: after these nobody knows what the host did
_UNKNOWN = frozenset({Verdict.AWAIT_HOST, Verdict.PROBE})

#: seconds until it is looked again what became of a delete
_DELETE_SECONDS = 5.0

_AGENT_DOWN = "Service is unavailable at this time."


def place(server: Server) -> Place:
    """Return where the server's VM is."""
    return Place(server.host, None, server.cluster, server.node, server.vmid)


def placed(server: Server) -> Placed | None:
    """Return the server's VM as commands name it; None: it has none.

    Not the plan's: it may have been evacuated since, as another VM.
    """
    return None if server.vmid is None else move_command.placed(place(server))


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    action: str,
    stage: str,
    plan: Plan,
) -> Operation:
    """Write the operation, handed over to the agent. Raises Conflict while that is down."""
    worker = cloud.worker_of(connection, str(server.host))
    if worker is None:
        raise Conflict(_AGENT_DOWN)
    handed_over = HandedOver(worker, stage)
    return start.begin(connection, cloud, ctxt, server, action, plan, handed_over=handed_over)


def is_unknown(failure: Failure) -> bool:
    """Return whether after this failure nobody knows if the VM names the device."""
    return failure.category is Category.NODE_UNHEALTHY or verdict_of(failure) in _UNKNOWN


class Plugging(UnwoundCommand[Task, S], OfServer[S]):
    """The parts of such flows that don't depend on the device."""

    unseen = "The agent does not say how it ended."
    wakes = False

    def table(self) -> Table[Task]:
        """Return the one stage. The operation doesn't take the server, and may lose it."""
        table = super().table()
        # Without ``load``: what has just begun has the server already.
        return dataclasses.replace(
            table, on_superseded=self._on_superseded, was_superseded=_was_superseded, load=None
        )

    def stages(self) -> tuple[Stage[Task], ...]:
        """Return the one stage, with its undo."""
        (stage,) = super().stages()
        return (dataclasses.replace(stage, undo=self.undo()),)

    @abc.abstractmethod
    def undo(self) -> Undo[Task]:
        """Return what has the device unplugged again."""

    def reach(self, task: Task) -> tuple[str, Task] | None:
        """Give the lease to the worker of the host that has the VM by now."""
        where = placed(task.server)
        if where is None:
            return None
        worker = leases.worker_with(task.operation.lease_owner) if task.fresh else None
        worker = worker or self._cloud.take_to(task.operation, where.host)
        return None if worker is None else (worker, task)

    def where(self, task: Task) -> Placed:
        """Return where the VM is by now."""
        return placed(task.server) or super().where(task)

    def lock(self, connection: Transaction, task: Task) -> Any:
        """Lock the server."""
        return servers.get(connection, task.server.uuid, lock=True)

    def unplug_again(self, task: Task) -> bool:
        """Have it unplugged, wherever the server is by now; return whether there is no VM."""
        server = task.server
        if server.deleted_at is not None or server.vmid is None:
            return True
        # While it is being moved nobody knows which VM will be its; a delete may be refused.
        return close.later_unless(self._cloud, task, server.task_state is None and self.send(task))

    def _on_superseded(self, task: Task) -> None:
        """End it if its server is deleted; wait while a delete runs, as that may be refused.

        Else another conductor continues with it.
        """
        if task.server.deleted_at is not None:
            close.overtaken(self._cloud, task)
        elif task.is_being_deleted:
            self._cloud.wait(task.operation, _DELETE_SECONDS)


def _was_superseded(task: Task) -> bool:
    return task.is_being_deleted


class Attaching(Plugging[S]):
    """The attaching ones: what fails is unplugged again, and the device is free."""

    back: ClassVar[str]
    """The name of the undo."""

    def undo(self) -> Undo[Task]:
        """Return what has the device unplugged again."""
        is_back = functools.partial(close.again_unless_ok, self._cloud)
        return Undo(self.back, self.unplug_again, is_back, self.give_back)

    @abc.abstractmethod
    def give_back(self, connection: Transaction, task: Task, failure: Failure | None) -> Task:
        """Set the device to its previous state; return the task."""


class Unplugging(Plugging[S]):
    """The flows that detach.

    A device that the guest does not release remains the server's. If the outcome is unknown, as
    the node stopped answering in between, unplugging is repeated until an agent has confirmed
    whether the VM's configuration names the device: the record is never a guess.
    """

    def undo(self) -> Undo[Task]:
        """Return what follows where its end is unknown."""
        return Undo(f"{self.stage}_again", self.unplug_again, self._is_seen, self._settled)

    @abc.abstractmethod
    def write_detached(self, connection: Transaction, task: Task, row: Any) -> None:
        """Record that the server no longer has the device; ``row``: what ``lock`` returned."""

    @abc.abstractmethod
    def write_still_attached(
        self, connection: Transaction, task: Task, row: Any, failure: Failure
    ) -> None:
        """Record that the server still has the device."""

    @abc.abstractmethod
    def has(self, connection: Transaction, task: Task) -> bool:
        """Return whether the record says that the server has the device."""

    def write_done(self, connection: Transaction, end: End[Task, S]) -> None:
        """Have the server lose the device."""
        self.write_detached(connection, end.task, end.row)

    def write_failed(self, connection: Transaction, end: End[Task, S]) -> None:
        """Record that the server still has the device."""
        self.write_still_attached(connection, end.task, end.row, end.failure)

    def fail(self, task: Task, failure: Failure, outcome: S | None = None) -> None:
        """Close the operation as failed; where its end is unknown, begin to look."""
        if is_unknown(failure):
            super().fail(task, failure)
        else:
            OneCommand.fail(self, task, failure, outcome)

    def _is_seen(self, task: Task, outcome: Outcome) -> bool:
        if outcome.ok or not is_unknown(failure_of(outcome)):
            return True
        close.again(self._cloud, task.operation, outcome.failure)
        return False

    def _settled(self, connection: Transaction, task: Task, failure: Failure | None) -> Task:
        row = self.lock(connection, task)
        if failure is None:
            self.write_detached(connection, task, row)
        else:
            self.write_still_attached(connection, task, row, failure)
        return task

    def write_undone(self, connection: Transaction, task: Task, row: Any) -> None:
        """Close it as failed if the server still has the device."""
        kept = self.has(connection, task)
        state = OperationState.FAILED if kept else OperationState.DONE
        ledger.close(connection, task.operation.id, state, task.operation.message)

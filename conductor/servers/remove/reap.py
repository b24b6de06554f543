"""Reap: destroy what the audit proved to be a server's that has no VM there.

It is an operation of its own, with its journal entry and its faults, and changes no server's
state. The agent checks its ownership fence once more. It is tried once; the audit, which sees what
is left, begins the next one.
"""

from __future__ import annotations

from common.messages.commands import Destroy
from common.messages.reports import Category, Failure, Removed
from conductor.engine.command_end import End
from conductor.engine.stages import Task
from conductor.servers.server_command import OfServer
from conductor.store.servers import vmids
from conductor.store.transactions import Transaction


class RemovalAt(OfServer[Removed]):
    """A removal of what is a server's, at a place that isn't the record's; its VMID is held."""

    stage = "destroy"
    sends = Destroy
    unseen = "Not everything was seen gone."
    wakes = False

    def succeeded(self, task: Task, outcome: Removed) -> bool:
        """Return whether everything was seen gone."""
        return outcome.gone

    def write_done(self, connection: Transaction, end: End[Task, Removed]) -> None:
        """Free the VMID that it held."""
        vmids.release_held(connection, end.operation.id)


class Reap(RemovalAt):
    """The flow of ``InternalAction.REAP``."""

    late = "It did not end in time."
    hopeless = frozenset(Category)

    def do(self, task: Task) -> None:
        """Send the command, unless the record gave the place to the server since."""
        server, where = task.server, self.where(task)
        left_behind = task.operation.ordered(Destroy).left_behind
        alive = server.deleted_at is None
        its_vm = alive and (server.cluster, server.vmid) == (where.cluster, where.vmid)
        away = its_vm and server.node != where.node
        if its_vm if left_behind is None else not away:
            text = "The record says that the VM is the server's."
            if left_behind is not None:
                text = f"The record says no more that the VM is on another node than {where.node}."
            self.fail(task, Failure(Category.CONFIGURATION, text, host=where.host))
        else:
            super().do(task)

    def on_no_agent(self, task: Task) -> None:
        """Wait for it until the deadline."""
        self.wait(task)

    def write_failed(self, connection: Transaction, end: End[Task, Removed]) -> None:
        """Quarantine that VMID."""
        operation, target = end.operation, end.operation.plan.target
        if vmids.holds(connection, operation.id):
            why = end.failure.message
            vmids.quarantine(connection, str(target.cluster), int(target.vmid or 0), why)

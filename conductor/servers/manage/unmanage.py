"""Release: the reverse of an adoption. The record and the VM's mark are deleted, not the VM."""

from __future__ import annotations

from common.messages.commands import Mark
from common.messages.reports import Failure, Marked
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Task
from conductor.servers.remove.finish_delete import leave_vm
from conductor.servers.server_command import ServerCommand
from conductor.store.transactions import Transaction


class Unmanage(ServerCommand[Marked]):
    """The flow of the action ``release``. A fault says if the mark could not be removed."""

    stage = "unmark"
    unseen = "The mark was not seen removed."
    wakes = False

    def command(self, task: Task) -> Mark:
        """Return what removes the mark."""
        return Mark(*self.about(task), on=False)

    def succeeded(self, task: Task, outcome: Marked) -> bool:
        """Return whether the mark was seen gone."""
        return outcome.gone

    def on_success(self, task: Task, outcome: Marked) -> None:
        """Release the claim, then end. Raises Unavailable to be repeated without placement."""
        self._cloud.placement.release(task.server.uuid)
        OneCommand.on_success(self, task, outcome)

    def write_done(self, connection: Transaction, end: End[Task, Marked]) -> None:
        """Delete the record, the VMID and the ports."""
        leave_vm(connection, end.task.server, end.operation.id)

    def fail(self, task: Task, failure: Failure, outcome: Marked | None = None) -> None:
        """End with the server as it was."""
        super().fail(task, failure)

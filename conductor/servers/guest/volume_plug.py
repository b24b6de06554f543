"""Attach and detach a volume: one command to the agent, which looks before it acts.

A volume whose attachment fails is available again once it is confirmed that the VM doesn't name
it; a volume that the guest does not release remains attached.
"""

from __future__ import annotations

from typing import Any

from common.messages.commands import PlugVolume
from common.messages.reports import Failure, Plugged
from common.resources.volumes import ATTACH, DETACH, SLOTS, AttachStatus
from conductor.engine.command_end import End
from conductor.engine.stages import Task
from conductor.servers.guest.begin_volume import PLUG, UNPLUG
from conductor.servers.guest.plugging import Attaching, Plugging, Unplugging
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, volumes


class _Volume(Plugging[Plugged]):
    """Sends the command about a volume."""

    def command(self, task: Task) -> PlugVolume:
        """Return the command that plugs or unplugs it."""
        on = self.stage == PLUG and not task.unwinding
        others = self._others(task) if on else ()
        return self.planned(task, PlugVolume, on=on, others=others)

    def _others(self, task: Task) -> tuple[int, ...]:
        """Return the slots that no volume of the server has: its VM may have disks of its own."""
        with self._cloud.store.read() as connection:
            used = {one.slot for one in attachments.of_server(connection, task.server.uuid)}
        return tuple(slot for slot in SLOTS if slot not in used)

    def lock(self, connection: Transaction, task: Task) -> Any:
        """Lock the server, then the volume; return the volume's row, None if it is gone."""
        super().lock(connection, task)
        return volumes.held(connection, task.operation.ordered(PlugVolume).volume_id)


class AttachVolumeFlow(_Volume, Attaching[Plugged]):
    """The flow of the action ``attach_volume``; what accepted it has written the attachment."""

    stage, back = PLUG, "unplug_back"
    late = f"{ATTACH} did not end in time."

    def write_done(self, connection: Transaction, end: End[Task, Plugged]) -> None:
        """Set the volume to in-use, in the slot that the agent reported."""
        row, slot, uuid = end.row, end.outcome.slot, end.task.server.uuid
        if row is not None and volumes.end(connection, row, ATTACH, ok=True):
            attachments.set_status(connection, row.id, uuid, AttachStatus.ATTACHED)
            if slot is not None:
                attachments.place(connection, row.id, uuid, slot)

    def give_back(self, connection: Transaction, task: Task, failure: Failure | None) -> Task:
        """Set the volume to available; return the task."""
        row = self.lock(connection, task)
        if row is not None:
            free(connection, row, task, ATTACH, ok=False)
        return task


class DetachVolumeFlow(_Volume, Unplugging[Plugged]):
    """The flow of the action ``detach_volume``."""

    stage = UNPLUG
    late = f"{DETACH} did not end in time."

    def write_detached(self, connection: Transaction, task: Task, row: Any) -> None:
        """Set the volume to available."""
        if row is not None:
            free(connection, row, task, DETACH, ok=True)

    def write_still_attached(
        self, connection: Transaction, task: Task, row: Any, failure: Failure
    ) -> None:
        """Set the volume to in-use, with the failure as its fault."""
        if row is not None and self.has(connection, task):
            volumes.end(connection, row, DETACH, ok=False, fault=failure.message)
            attachments.set_status(connection, row.id, task.server.uuid, AttachStatus.ATTACHED)

    def has(self, connection: Transaction, task: Task) -> bool:
        """Return whether the server has the volume."""
        found = attachments.of_volume(connection, task.operation.ordered(PlugVolume).volume_id)
        return found is not None and found.server_uuid == task.server.uuid


def free(connection: Transaction, row: Any, task: Task, action: str, *, ok: bool) -> None:
    """Have a volume that is locked belong to no server, and keep which one had it last."""
    server = task.server
    user = {"server_uuid": server.uuid, "node": server.node, "vmid": server.vmid}
    # Where it is not the server's any more, what it shows is another one's business.
    if attachments.delete(connection, row.id, task.server.uuid):
        volumes.end(connection, row, action, ok=ok, last_user=user)

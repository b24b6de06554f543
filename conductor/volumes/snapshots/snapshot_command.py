"""Flows of one command about a snapshot, with its record and that of its volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.messages.commands import (
    Command,
    MakeVolume,
    RemoveVolume,
    SnapshotVerb,
    SnapVolume,
    VolumeUser,
)
from common.messages.reports import Removed
from common.resources.states import ResourceType
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Work
from conductor.plans import OfVolumePlan
from conductor.store.records import Operation
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, snapshots, volumes


@dataclass(frozen=True)
class SnapshotWork(Work):
    """An operation about a snapshot, and what there is of it; None: it is gone."""

    snapshot: Any | None
    volume: Any | None
    user: VolumeUser | None
    """The server that has the volume."""

    @property
    def plan(self) -> OfVolumePlan:
        """The operation's plan."""
        return self.operation.planned(OfVolumePlan)


def snap(verb: SnapshotVerb, volume: Any, name: str = "", description: str = "") -> SnapVolume:
    """Return what is planned for a volume's row, or for a snapshot of it."""
    return SnapVolume(
        verb=verb,
        volid=str(volume.volid),
        storage_way=str(volume.snapshot_way or ""),
        name=name,
        description=description,
    )


class SnapshotCommand(OneCommand[SnapshotWork, Removed]):
    """A flow of one command about a snapshot, or about a volume in its holder."""

    def load(self, connection: Transaction, operation: Operation) -> SnapshotWork:
        """Read the snapshot, its volume and the server that has that."""
        volume_id = operation.planned(OfVolumePlan).volume_id
        return SnapshotWork(
            operation,
            snapshots.get(connection, operation.resource_id),
            volumes.get(connection, volume_id),
            _user_of(connection, volume_id),
        )

    def command(self, task: SnapshotWork) -> Command[Removed]:
        """Return what an agent does: in the volume's holder, or with a copy."""
        if isinstance(task.plan.command, SnapVolume):
            about = (ResourceType.VOLUME, task.plan.volume_id)
            return self.planned(task, SnapVolume, about, user=task.user)
        removes = isinstance(task.plan.command, RemoveVolume)
        return self.planned(task, RemoveVolume if removes else MakeVolume)


def _user_of(connection: Transaction, volume_id: str) -> VolumeUser | None:
    """Return the server's VM that has a volume; None: none has."""
    attached = attachments.of_volume(connection, volume_id)
    if attached is None:
        return None
    server = servers.get(connection, attached.server_uuid)
    if server.vmid is None or server.node is None:
        return None
    return VolumeUser(server.uuid, server.node, server.vmid)

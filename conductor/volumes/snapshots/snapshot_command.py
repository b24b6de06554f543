"""Flows of one command about a snapshot, with its record and that of its volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.messages.commands import SnapshotVerb, SnapVolume, VolumeUser
from common.messages.reports import Removed
from common.states import ResourceType
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Work
from conductor.plans import VolumeSnapshotPlan
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
    def plan(self) -> VolumeSnapshotPlan:
        """The operation's plan."""
        return self.operation.planned(VolumeSnapshotPlan)


class SnapshotCommand(OneCommand[SnapshotWork, Removed]):
    """A flow of one command about a snapshot, or about a volume in its holder."""

    def load(self, connection: Transaction, operation: Operation) -> SnapshotWork:
        """Read the snapshot, its volume and the server that has that."""
        volume_id = operation.planned(VolumeSnapshotPlan).volume_id
        return SnapshotWork(
            operation,
            snapshots.get(connection, operation.resource_id),
            volumes.get(connection, volume_id),
            _user_of(connection, volume_id),
        )

    def snap(self, task: SnapshotWork, verb: SnapshotVerb) -> SnapVolume:
        """Return what an agent does with the snapshot in the volume's holder."""
        plan = task.plan
        return SnapVolume(
            *self.about(task, (ResourceType.VOLUME, plan.volume_id)),
            verb=verb,
            volid=str(plan.volid),
            storage_way=plan.way,
            name=str(plan.snapname),
            description=f"micronova: snapshot={task.operation.resource_id}",
            user=task.user,
        )


def _user_of(connection: Transaction, volume_id: str) -> VolumeUser | None:
    """Return the server's VM that has a volume; None: none has."""
    attached = attachments.of_volume(connection, volume_id)
    if attached is None:
        return None
    server = servers.get(connection, attached.server_uuid)
    if server.vmid is None or server.node is None:
        return None
    return VolumeUser(server.uuid, server.node, server.vmid)

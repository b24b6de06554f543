"""Flows of one command about a volume, with its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.messages.commands import MakeVolume, Placed
from common.messages.reports import VolumeMade
from common.resources.volumes import VolumeStatus
from conductor.cloud import placed
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Out, Work
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import volumes


@dataclass(frozen=True)
class VolumeWork(Work):
    """An operation about a volume, and its row; None: it is gone."""

    volume: Any | None

    @property
    def place(self) -> Placed:
        """Return the holder's. Raises ValueError before it is reserved."""
        where = placed(self.operation)
        if where is None:
            raise ValueError(f"operation {self.operation.id} has no place")
        return where


class VolumeCommand(OneCommand[VolumeWork, Out]):
    """A flow of one command about a volume."""

    def load(self, connection: Transaction, operation: Operation) -> VolumeWork:
        """Read the volume."""
        return VolumeWork(operation, volumes.get(connection, operation.resource_id))

    def lock(self, connection: Transaction, task: VolumeWork) -> Any:
        """Lock the volume, and return its row; None: it is gone."""
        return volumes.held(connection, task.operation.resource_id)


class MakingVolume(VolumeCommand[VolumeMade]):
    """A flow of one command that makes a holder with the volume."""

    def unwanted(self, task: VolumeWork) -> str | None:
        """Return that the volume is deleted."""
        deleted = task.volume is None or task.volume.status == VolumeStatus.DELETING
        return "The volume was deleted." if deleted else None

    def command(self, task: VolumeWork) -> MakeVolume:
        """Return what makes it."""
        name = "" if task.volume is None else task.volume.name
        of, user_id = task.operation, str(task.operation.user_id)
        return self.planned(
            task, MakeVolume, name=name, project_id=str(of.project_id), user_id=user_id
        )

    def succeeded(self, task: VolumeWork, outcome: VolumeMade) -> bool:
        """Return whether it was seen there."""
        return outcome.ok and outcome.volume is not None

"""Flows of one command about a backup, with its record and that of its volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Out, Work
from conductor.plans import BackupPlan
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import backups, volumes


@dataclass(frozen=True)
class BackupWork(Work):
    """An operation about a backup, and what there is of it; None: it is gone."""

    backup: Any | None
    volume: Any | None

    @property
    def plan(self) -> BackupPlan:
        """The operation's plan."""
        return self.operation.planned(BackupPlan)


class BackupCommand(OneCommand[BackupWork, Out]):
    """A flow of one command about a backup."""

    def load(self, connection: Transaction, operation: Operation) -> BackupWork:
        """Read the backup and its volume."""
        volume_id = operation.planned(BackupPlan).volume_id
        return BackupWork(
            operation,
            backups.get(connection, operation.resource_id),
            volumes.get(connection, volume_id),
        )

    def lock(self, connection: Transaction, task: BackupWork) -> Any:
        """Lock the volume, then the backup; return both rows. None: it is gone."""
        volume = volumes.held(connection, task.plan.volume_id)
        return volume, backups.held(connection, task.operation.resource_id)

"""Operations about a backup, with its record and that of its volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.messages.commands import Placed
from conductor.cloud import placed
from conductor.engine.stages import Work
from conductor.plans import BackupPlan
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import backups, records


@dataclass(frozen=True)
class BackupWork(Work):
    """An operation about a backup, and what there is of it; None: it is gone."""

    backup: Any | None
    volume: Any | None

    @property
    def plan(self) -> BackupPlan:
        """The operation's plan."""
        return self.operation.planned(BackupPlan)

    @property
    def place(self) -> Placed:
        """Return the place of the holder, or of who removes the archive. Raises ValueError."""
        where = placed(self.operation)
        if where is None:
            raise ValueError(f"operation {self.operation.id} has no place")
        return where


def load(connection: Transaction, operation: Operation) -> BackupWork:
    """Read the backup and its volume."""
    volume_id = operation.planned(BackupPlan).volume_id
    return BackupWork(
        operation,
        backups.get(connection, operation.resource_id),
        records.get(connection, volume_id),
    )

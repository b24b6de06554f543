"""Operations about a volume, with its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.messages.commands import Placed
from conductor.cloud import placed
from conductor.engine.stages import Work
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import records


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


def load(connection: Transaction, operation: Operation) -> VolumeWork:
    """Read the volume."""
    return VolumeWork(operation, records.get(connection, operation.resource_id))

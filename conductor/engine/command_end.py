"""What ``write_done`` and ``write_failed`` of a flow of one command are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

from common.messages.reports import Failure, MadeVolume, VolumeMade, VolumeSeen
from conductor.cloud import failure_of
from conductor.engine.stages import Out, W
from conductor.store.records import Operation


@dataclass(frozen=True)
class End(Generic[W, Out]):
    """The end of an operation, for the code that writes its result as the operation is closed."""

    task: W
    row: Any
    """What ``OneCommand.lock`` returned."""
    outcome: Out
    """The agent's; where no agent has looked, it has nothing but the failure."""

    @property
    def operation(self) -> Operation:
        """The operation, as it was read."""
        return self.task.operation

    @property
    def failure(self) -> Failure:
        """Return why it failed. Raises ValueError if it succeeded."""
        return failure_of(self.outcome)

    @property
    def made(self: End[Any, VolumeSeen] | End[Any, VolumeMade]) -> MadeVolume:
        """Return the volume that the agent made. Raises ValueError without one."""
        if self.outcome.volume is None:
            raise ValueError(f"the outcome of operation {self.operation.id} has no volume")
        return self.outcome.volume

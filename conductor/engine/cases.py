"""A flow with cases: one table of stages for each, chosen by what is committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic

from conductor.engine.stages import Stage, Table, Undo, W
from conductor.store.records import Operation
from conductor.store.transactions import Transaction


@dataclass(frozen=True)
class Cases(Generic[W]):
    """The tables of one action, which begin with the same stages.

    One of these decides the case. It commits the plan, which says the case, and the stage that
    follows in the table of that case.
    """

    choose: Callable[[W], str]
    """Returns the case of a task by its operation's plan. Pure."""
    tables: Mapping[str, Table[W]]
    """By case; the first is that of a task whose case is not decided."""

    def __post_init__(self) -> None:
        for table in self.tables.values():
            if (table.owns, table.load) != (self._first.owns, self.load):
                raise ValueError("the cases of an action are about the same resource")

    def of(self, task: W) -> Table[W]:
        """Return the table of the task's case; the first table if the case is unknown."""
        return self.tables.get(self.choose(task), self._first)

    @property
    def load(self) -> Callable[[Transaction, Operation], W] | None:
        """Return what reads the resource of all of them."""
        return self._first.load

    @property
    def stages(self) -> tuple[Stage[W], ...]:
        """Return the stages of all tables."""
        return tuple(stage for table in self.tables.values() for stage in table.stages)

    @property
    def undos(self) -> tuple[Undo[W], ...]:
        """Return the undos of all tables."""
        return tuple(undo for table in self.tables.values() for undo in table.undos)

    @property
    def _first(self) -> Table[W]:
        return next(iter(self.tables.values()))

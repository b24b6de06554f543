"""Moves a build through its stages: server, plan and events, each written once a transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import StaleTransition
from common.messages.reports import Step
from common.resources.states import TaskState, VmState
from conductor.plans import Plan
from conductor.store.ledger import leases, transitions
from conductor.store.ledger import operations as ledger
from conductor.store.ledger.leases import Advance
from conductor.store.ledger.transitions import Walk
from conductor.store.records import Operation, Server
from conductor.store.transactions import Transaction

#: the stage of a build by the task_state; each shows one
STAGES: Mapping[TaskState, str] = {
    TaskState.SCHEDULING: "place",
    TaskState.NETWORKING: "network",
    TaskState.BLOCK_DEVICE_MAPPING: "map_disk",
    TaskState.SPAWNING: "spawn",
}


def require_building(operation: Operation, server: Server) -> None:
    """Raise StaleTransition for a server whose build is over, whichever operation it has."""
    if server.vm_state != VmState.BUILDING:
        raise StaleTransition(server_uuid=server.uuid, operation_id=operation.id)


class TransitionDraft:
    """Collects stages of a build for one transaction, at whose end ``write_all`` writes them.

    ``operation`` and ``server`` are as they will be after the commit.
    """

    def __init__(self, owner: str, operation: Operation, server: Server) -> None:
        """``owner`` is the conductor that must have the lease."""
        # What it began on is not what it continues with.
        self.operation, self.server = dataclasses.replace(operation, begun_on=None), server
        self.owner, self._read = owner, (operation, server)
        self._moves: list[tuple[VmState, TaskState | None]] = []
        self._values: dict[str, Any] = {}
        self._steps: list[Step] = []
        self._lease: dict[str, Any] = {}

    def advance_stage(self, plan: Plan, **values: Any) -> None:
        """Move the server to the next task_state of its build, with what was decided.

        ``values`` are further columns of the server. Raises StaleTransition if the build has
        ended.
        """
        require_building(self.operation, self.server)
        following = transitions.next_task("create", self.server.task_state)
        self._moves.append((VmState.BUILDING, following))
        self._values |= values
        stage = STAGES[following] if following is not None else None
        self.server = self.server.replace(task_state=following, **values)
        self.operation = dataclasses.replace(self.operation, plan=plan, stage=stage)

    def record(self, step: Step) -> None:
        """Record a step of the conductor."""
        self._steps.append(step)

    def hand_over(self, worker: str, lease_seconds: float) -> None:
        """Pass the lease to an agent's worker, with the stage that it is given."""
        self._lease = leases.owned(leases.of_worker(worker), lease_seconds)
        del self._lease["state"]  # It is the owner's, and so it is not queued.
        self.operation = dataclasses.replace(self.operation, lease_owner=leases.of_worker(worker))

    def write(self, connection: Transaction) -> tuple[Operation, Server]:
        """Write it alone; see ``write_all``."""
        return write_all(connection, [self])[0]

    def _walk(self) -> Walk | None:
        operation, server = self._read
        return Walk(server, operation.id, self._moves, self._values) if self._moves else None

    def _advance(self) -> Advance | None:
        """Return what is stored with the plan.

        If nothing was decided the task_state alone says which stage it is.
        """
        operation, decided = self._read[0], self.operation
        if not self._lease and decided.plan == operation.plan:
            return None
        return Advance(operation, decided.plan, decided.stage, self._lease)

    def _events(self) -> list[dict[str, Any]]:
        return [ledger.conductor_event(self._read[0], step) for step in self._steps]


def write_all(
    connection: Transaction, drafts: Sequence[TransitionDraft]
) -> list[tuple[Operation, Server]]:
    """Write drafts of one owner, by one statement a table; return what each is now.

    Raises StaleTransition when one of the servers, or leases, is in other hands.
    """
    if events := [row for draft in drafts for row in draft._events()]:
        ledger.upsert_events(connection, events)
    if walks := [walk for draft in drafts if (walk := draft._walk())]:
        transitions.move_through(connection, walks)
    if advances := [one for draft in drafts if (one := draft._advance())]:
        leases.advance_all(connection, advances, drafts[0].owner)
    return [(draft.operation, draft.server) for draft in drafts]

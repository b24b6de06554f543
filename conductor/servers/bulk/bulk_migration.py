"""Carries out drains and rebalances: each move is an ordinary operation on its server.

The plan in the ledger says which were begun: a migration is begun in the transaction that writes
its operation into the plan, under the lock of all bulk migrations. So a conductor that takes over
finds it there and never begins a second one. No thread waits for a migration: its end wakes the
bulk migration.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from common import clock
from common.errors import Conflict, Forbidden, Invalid, NotFound, StaleTransition
from common.log import logger
from common.moving import Way
from common.resources.bulk_migrations import ENDED, Move, MoveState, Steering, sentence
from common.resources.states import OperationState
from conductor.cloud import Cloud
from conductor.engine.stages import Stage, Table, Work
from conductor.plans import BulkPlan, MovePlan
from conductor.servers.bulk import decide
from conductor.servers.bulk.looking import look
from conductor.servers.move import begin_live_migration
from conductor.servers.move.begin_resize import ResizeAcceptance
from conductor.store.ledger import bulk_migrations as store
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: between two looks at a paused bulk migration none of whose moves is under way
PAUSED_SECONDS = 60.0


@dataclass(frozen=True)
class _Round:
    """What one look led to."""

    over: bool
    begins: tuple[Move, ...] = ()


def load(_: Transaction, operation: Operation) -> Work:
    """Return the operation alone: its plan has all that is needed."""
    return Work(operation)


class BulkFlow:
    """The flow of drains and rebalances."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._resizes = ResizeAcceptance(cloud)

    def table(self) -> Table[Work]:
        """Return the one stage: it looks, begins what may begin, and looks again later.

        Nothing is undone: servers that were moved are not moved back. After the deadline no
        further move begins.
        """
        stage = Stage("move_servers", self._go, final=True)
        return Table((stage,), on_superseded=None, owns=False, load=load)

    def _go(self, task: Work) -> None:
        found = self._cloud.store.run(lambda c: self._look(c, task))
        if found.over:
            return
        for move in found.begins:
            self._begin(task, move)
        at_once = self._cloud.store.run(lambda c: self._wait(c, task))
        if found.begins or at_once:
            self._cloud.wake()

    def _look(self, connection: Transaction, task: Work) -> _Round:
        operation = self._mine(connection, task)
        before = operation.planned(BulkPlan)
        facts = look(connection, before, late=task.late)
        plan = decide.after(before, facts)
        if decide.is_over(plan, facts):
            self._end(connection, operation, decide.at_the_end(plan))
            return _Round(over=True)
        store.save(connection, operation, plan)
        # How many others have under way is looked at where one begins.
        return _Round(over=False, begins=tuple(decide.begins(plan, facts, 0, self._in_all)))

    @property
    def _in_all(self) -> int:
        return int(self._cloud.conf.conductor.bulk_moves_in_all)

    def _end(self, connection: Transaction, operation: Operation, plan: BulkPlan) -> None:
        message = sentence(plan.moves)
        if plan.steering == Steering.CANCEL:
            message = f"Cancelled: {message}"
        left = any(one.state not in ENDED - {MoveState.FAILED} for one in plan.moves)
        state = OperationState.FAILED if left else OperationState.DONE
        store.save(connection, operation, plan)
        ledger.close(connection, operation.id, state, message)
        LOG.info("The %s of %s ends: %s", operation.action, operation.resource_id, message)

    def _begin(self, task: Work, move: Move) -> None:
        """Begin a migration or its confirmation; a refusal is written down as the reason."""
        try:
            self._cloud.store.run(lambda c: self._begin_in(c, task, move))
        except StaleTransition:
            raise
        except (Conflict, Forbidden, Invalid, NotFound) as error:
            why = error.message
            self._cloud.store.run(lambda c: self._refuse(c, task, move, why))

    def _begin_in(self, connection: Transaction, task: Work, move: Move) -> None:
        everywhere = store.locked(connection)
        operation = self._mine(connection, task)
        plan = operation.planned(BulkPlan)
        facts = look(connection, plan, late=task.late)
        others = sum(
            decide.under_way(one.planned(BulkPlan)) for one in everywhere if one.id != operation.id
        )
        if move not in decide.begins(decide.after(plan, facts), facts, others, self._in_all):
            return
        begun = self._migration(connection, operation, move)
        # Any conductor takes it, as it takes what another one left.
        ours = dataclasses.replace(begun.planned(MovePlan), bulk=operation.id)
        ledger.save(connection, begun.id, plan=ours, **leases.unowned(clock.utcnow()))
        self._save(connection, operation, decide.begun(move, begun.id))

    def _migration(self, connection: Transaction, operation: Operation, move: Move) -> Operation:
        ctxt, uuid = operation.ctxt, move.server_uuid
        if move.state == MoveState.CONFIRMING:
            return self._resizes.begin_end(connection, ctxt, uuid, "confirmResize")
        if move.way == Way.LIVE:
            return begin_live_migration.begin(self._cloud, connection, ctxt, uuid, move.target)
        return self._resizes.begin_migration(connection, ctxt, uuid, move.target)

    def _refuse(self, connection: Transaction, task: Work, move: Move, why: str) -> None:
        operation = self._mine(connection, task)
        facts = look(connection, operation.planned(BulkPlan))
        self._save(connection, operation, decide.refused(move, why, facts.now))

    @staticmethod
    def _save(connection: Transaction, operation: Operation, move: Move) -> None:
        plan = operation.planned(BulkPlan)
        moves = tuple(move if move.server_uuid == one.server_uuid else one for one in plan.moves)
        store.save(connection, operation, dataclasses.replace(plan, moves=moves))

    def _wait(self, connection: Transaction, task: Work) -> bool:
        """Have it looked at again, by any conductor; return whether now: a migration has ended.

        What ends from here on makes it due; see ``bulk_migrations.wake_after``.
        """
        operation = self._mine(connection, task)
        plan = operation.planned(BulkPlan)
        if store.any_ended(connection, plan):
            leases.postpone(connection, operation.id, 0)
            return True
        idle = plan.steering == Steering.PAUSE and not decide.under_way(plan)
        seconds = PAUSED_SECONDS if idle else float(self._cloud.conf.conductor.scan_seconds)
        leases.postpone(connection, operation.id, seconds)
        return False

    def _mine(self, connection: Transaction, task: Work) -> Operation:
        """Return it as it is now, locked. Raises StaleTransition if it isn't ours any more."""
        now = store.get_locked(connection, task.operation.id)
        if now is None or now.lease_owner != self._cloud.name:
            raise StaleTransition(operation_id=task.operation.id)
        return now

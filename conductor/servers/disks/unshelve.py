"""Unshelve servers: on the host that has the disk if it takes them, else the VM moves to another.

A parked VM claims its disk only, so its host may be full or disabled when it comes back. Then, or
if another host or zone was asked for, the scheduler chooses one, and the stopped VM moves there.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from common import clock
from common.log import logger
from common.messages.commands import Power, PowerAction
from common.messages.reports import Category, Failure, VmSeen
from common.messages.scheduling import Decision
from common.resources.migrations import MigrationStatus, MigrationType
from common.resources.states import OperationState, PowerState, TaskState, VmState
from conductor.cloud import Cloud, failure_of
from conductor.engine import close, unwinding
from conductor.engine.cases import Cases
from conductor.engine.stages import Stage, Table, Task, Undo, answer
from conductor.plans import Place, ResizePlan
from conductor.servers.disks.begin_unshelve import fixed
from conductor.servers.disks.own_claim import OwnHost
from conductor.servers.disks.parking import Parking
from conductor.servers.move import own_host, shaping
from conductor.servers.move.begin_live_migration import place
from conductor.servers.move.cold_move import (
    OTHER_HOST,
    SAME_HOST,
    UNSHELVING,
    ColdMove,
    case,
    decided_move,
)
from conductor.servers.move.destination import Chosen, Destinations, Wanted
from conductor.servers.move.settling import hold
from conductor.store.hosts import registry
from conductor.store.images import server_images
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.servers import migrations, server_groups
from conductor.store.transactions import Transaction
from conductor.sync import allocations

LOG = logger(__name__)

#: Nova's words, which clients read
NO_VALID_HOST = "No valid host was found."
_STEP = "conductor_unshelve_instance"
_SHOWN = TaskState.UNSHELVING
CLAIM_ELSEWHERE, SETTLE = "claim_elsewhere", "settle"


class UnshelveFlow(Parking):
    """The flow of ``unshelve``."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self._own = OwnHost(cloud)
        self._destinations = Destinations(cloud)
        self._move = ColdMove(cloud, UNSHELVING, self._unwind, self._settle)

    def cases(self) -> Cases[Task]:
        """Return the stages of an unshelve on the same host, and of a move to another host."""
        release = Undo("release_claim", self._release, write=self._drop_place)
        stopped = functools.partial(close.again_unless_ok, self._cloud)
        stop = Undo[Task]("stop_again", self._stop_again, stopped)
        claim = Stage("claim", self._claim, shown=_SHOWN, undo=release)
        start = Stage("start", self._start, answer(Power, self._started), _SHOWN, undo=stop)
        elsewhere = Stage(CLAIM_ELSEWHERE, self._claim_elsewhere, shown=_SHOWN)
        settle = Stage(SETTLE, self._settle, shown=_SHOWN, final=True)
        move = self._move.stage("start")
        return Cases(
            case,
            {
                SAME_HOST: self._table(claim, start),
                OTHER_HOST: self._table(claim, elsewhere, move, start, settle),
            },
        )

    def _table(self, *stages: Stage[Task]) -> Table[Task]:
        ended = self._own.give_back
        return Table(
            stages, self._on_superseded, self._on_deadline, self._undone, on_already_closed=ended
        )

    # --- the claim, which decides the case

    def _claim(self, task: Task) -> Task | None:
        """Claim the own host where it may come back there, else look for another one."""
        operation, server = task.operation, task.server
        if self._cloud.store.run(lambda c: self._cloud.worker_of(c, str(server.host))) is None:
            # It can neither start there nor be moved from there.
            self._failed(task, self._no_agent(task))
            return None
        why = self._own.refused(task)
        if why is None:
            self._cloud.store.run(
                lambda c: leases.advance(
                    c, operation, operation.plan, "start", self._cloud.name, holding=True
                )
            )
            return task.at("start")
        with self._cloud.store.read() as connection:
            bound = fixed(connection, server)
        if bound is not None:
            self._no_valid_host(
                task, Decision(server.uuid, None), f"{why} It can't be moved: {bound}."
            )
            return None
        return self._cloud.store.run(lambda c: self._prepare_move(c, task, why))

    def _prepare_move(self, connection: Transaction, task: Task, why: str) -> Task:
        """Write the migration, whose UUID will hold the other host, before anything is claimed."""
        operation, server = task.operation, task.server
        here, _ = registry.host(connection, str(server.host))
        row = migrations.insert(
            connection,
            str(operation.ctxt.user_id),
            server,
            dict(server.flavor),
            kind=MigrationType.MIGRATION,
            claim=allocations.wanted(server),
        )
        migrations.set_status(connection, row.id, MigrationStatus.PRE_MIGRATING, operation)
        plan = dataclasses.replace(
            _plan(task),
            target=place(here, server.vmid),
            migration_id=row.id,
            holder=row.uuid,
            case=OTHER_HOST,
            was=server.vm_state,
            old=dict(server.flavor),
            new=dict(server.flavor),
        )
        owner = self._cloud.name
        leases.advance(connection, operation, plan, CLAIM_ELSEWHERE, owner, holding=True)
        ledger.save(connection, operation.id, message=why)
        now = dataclasses.replace(operation, plan=plan, stage=CLAIM_ELSEWHERE, message=why)
        return dataclasses.replace(task, operation=now)

    def _claim_elsewhere(self, task: Task) -> Task | None:
        plan, started = _plan(task), clock.utcnow()
        if plan.source.host is not None:
            return task

        def commit(connection: Transaction, chosen: Chosen) -> Task:
            operation = task.operation
            own_host.record(connection, operation, chosen.decision, started, _STEP)
            held = allocations.wanted(task.server)
            decided, values = decided_move(connection, plan, chosen, held)
            migrations.set_status(
                connection, plan.migration_id, MigrationStatus.MIGRATING, operation, **values
            )
            leases.advance(connection, operation, decided, "move", self._cloud.name)
            now = dataclasses.replace(operation, plan=decided, stage="move")
            return dataclasses.replace(task, operation=now)

        wanted = Wanted(plan.holder, plan.new, plan.asked_host)
        # A run before this one may have claimed a host already.
        found = self._destinations.find(dataclasses.replace(task, fresh=False), wanted, commit)
        if isinstance(found, Decision):
            self._no_valid_host(task, found, task.operation.message or "")
            return None
        return found

    def _no_valid_host(self, task: Task, decision: Decision, here: str) -> None:
        """Go back to parked: no host takes it; ``here``: why not its own."""
        why = " ".join(text for text in (here, decision.reason) if text)
        failure = Failure(
            Category.NO_VALID_HOST,
            f"{NO_VALID_HOST} {why}",
            _STEP,
            host=task.server.host,
            owner_message=f"{NO_VALID_HOST} There are not enough hosts available.",
        )

        unwinding.begin(self._cloud, self.cases().of(task), task, failure, decision)

    # --- the start

    def _start(self, task: Task) -> None:
        there = _there(task)
        if not self._send(task, _way_back(task), there):
            self._failed(task, self._no_agent(task, None if there is None else there.host))

    def _started(self, task: Task, outcome: VmSeen) -> Task | None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return None
        if case(task) == OTHER_HOST:
            return shaping.reach(self._cloud, task, SETTLE)
        self._cloud.store.run(lambda c: _end(c, task, power_state=outcome.power_state))
        LOG.info("Server %s is unshelved.", task.server.uuid)
        return None

    def _settle(self, task: Task) -> None:
        """Move the claims, then the record. Raises Unavailable to be repeated later."""
        plan, server = _plan(task), task.server
        mine = {str(plan.target.uuid): allocations.whole(server)}
        hold(self._cloud, task, mine, plan.holder, {})

        def work(connection: Transaction) -> None:
            facts, _ = registry.host(connection, str(plan.target.host), lock=True)
            server_groups.move_place(connection, server, plan.holder)
            status = MigrationStatus.CONFIRMED
            migrations.set_status(
                connection, plan.migration_id, status, task.operation, claim=None
            )
            _end(
                connection,
                task,
                power_state=PowerState.RUNNING,
                host=facts.host,
                node=facts.node,
                availability_zone=facts.availability_zone,
            )

        self._cloud.store.run(work)
        LOG.info("Server %s is unshelved on host %s.", server.uuid, plan.target.host)

    # --- failure

    def _failed(self, task: Task, failure: Failure) -> None:
        unwinding.again_or_begin(self._cloud, self.cases().of(task), task, failure)

    def _on_deadline(self, task: Task) -> None:
        self._unwind(task, Failure(Category.TASK_TIMEOUT, "It was not unshelved in time."))

    def _unwind(self, task: Task, failure: Failure) -> None:
        unwinding.begin(self._cloud, self.cases().of(task), task, failure)

    def _on_superseded(self, task: Task) -> None:
        """End it: another operation has the server, and gives back what the migration holds.

        Unless that came before a claim of ours: as long as none is committed, it is given back.
        """
        plan = _plan(task)
        if plan.holder and plan.source.host is None:
            self._destinations.release(plan.holder)
        close.overtaken(self._cloud, task)
        if case(task) != OTHER_HOST:
            self._own.give_back(task)

    def _stop_again(self, task: Task) -> bool:
        """Stop it: a start that failed may have started it all the same."""
        if _way_back(task) == PowerAction.RESUME:
            return True  # a stop would lose its memory; if the VM runs the audit finds that
        sent = self._send(task, PowerAction.STOP, _there(task))
        return close.later_unless(self._cloud, task, sent)

    def _release(self, task: Task) -> bool:
        """Hold again what it held, and nothing elsewhere. Raises Unavailable to be repeated."""
        self._hold(task, allocations.wanted(task.server))
        if _plan(task).holder:
            self._destinations.release(_plan(task).holder)
        return True

    @staticmethod
    def _drop_place(connection: Transaction, task: Task, failure: Failure | None) -> Task:
        if _plan(task).holder:
            server_groups.drop(connection, task.server, _plan(task).holder)
        return task

    @staticmethod
    def _undone(connection: Transaction, task: Task) -> None:
        """End with the server as it was."""
        operation, plan = task.operation, _plan(task)
        if plan.migration_id:
            status = MigrationStatus.ERROR
            migrations.set_status(connection, plan.migration_id, status, operation, claim=None)
        close.as_before(connection, task)


def _end(connection: Transaction, task: Task, **columns: Any) -> None:
    """End with the server active, and no longer listed as an image."""
    operation, server = task.operation, task.server
    server_images.forget_parked(connection, server.uuid)
    close.settle(connection, task, VmState.ACTIVE, **columns)
    ledger.close(connection, operation.id, OperationState.DONE)


def _plan(task: Task) -> ResizePlan:
    return task.operation.planned(ResizePlan)


def _there(task: Task) -> Place | None:
    """Return where its VM was moved to; None: it is on its own host."""
    return _plan(task).target if case(task) == OTHER_HOST else None


def _way_back(task: Task) -> PowerAction:
    """Return how its VM runs again."""
    saved = task.server.power_state == PowerState.SUSPENDED
    return PowerAction.RESUME if saved else PowerAction.START

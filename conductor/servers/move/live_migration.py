"""Live migration: another host is chosen and reserved, and the running VM moves there.

Which of the two nodes has the VM is what the agent saw, never what was asked: once its
configuration is on the target, the record follows, whatever failed. What failed there, as to put
its config drive in, is tried again with back-off before the operation ends.
"""

from __future__ import annotations

import dataclasses
import datetime

from common import clock
from common.errors import GenerationConflict, Unavailable
from common.failures import Verdict, verdict_of
from common.log import logger
from common.messages.commands import Move
from common.messages.facts import HostFacts
from common.messages.reports import Category, Failure, Moved, Step
from common.messages.scheduling import Decision
from common.resources.migrations import MigrationStatus
from common.resources.states import OperationState, TaskState
from conductor.cloud import Cloud, failure_of, silent
from conductor.engine import close, unwinding
from conductor.engine.stages import Stage, Table, Task, Undo, answer
from conductor.plans import NOWHERE, LiveMigrationPlan
from conductor.servers.move import move_command
from conductor.servers.move.destination import Chosen, Destinations, Wanted, storage
from conductor.servers.move.steer_migration import ABORTED
from conductor.store.hosts import registry
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.servers import migrations, server_groups
from conductor.store.transactions import Transaction
from conductor.sync import claims
from conductor.sync.allocations import of_flavor

LOG = logger(__name__)

#: Nova's words, which clients read
NO_VALID_HOST = "No valid host was found. There are not enough hosts available."
_SHOWN = TaskState.MIGRATING


class LiveMigrationFlow:
    """The flow of the action ``live-migration``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._destinations = Destinations(cloud)

    def table(self) -> Table[Task]:
        """Return its stages; from ``settle`` on the VM is on the target."""
        release = Undo("release_claim", self._release, write=self._drop_place)
        look = Undo("look_where", self._look_where, answer(Move, self._seen_where))
        return Table(
            (
                Stage("claim", self._claim, shown=_SHOWN, undo=release),
                Stage("move", self._move, answer(Move, self._moved), _SHOWN, look),
                Stage("settle", self._settle, shown=_SHOWN, final=True),
            ),
            on_superseded=self._on_superseded,
            on_deadline=self._on_deadline,
            undone=self._undone,
        )

    # --- the stages

    def _claim(self, task: Task) -> Task | None:
        """Claim a host, and commit the destination before an agent is called."""
        plan, started = _plan(task), clock.utcnow()
        wanted = Wanted(plan.holder, dict(task.server.flavor), plan.asked_host, plan.without)
        # What an earlier try of another host claimed is given back first.
        again = task if not plan.without else dataclasses.replace(task, fresh=False)

        def commit(connection: Transaction, chosen: Chosen) -> Task:
            return self._commit_destination(connection, task, chosen, started)

        found = self._destinations.find(again, wanted, commit)
        if isinstance(found, Decision):
            self._no_valid_host(task, found)
            return None
        return found

    def _commit_destination(
        self, connection: Transaction, task: Task, chosen: Chosen, started: datetime.datetime
    ) -> Task:
        operation, there = task.operation, chosen.facts
        here, _ = registry.host(connection, str(task.server.host))
        plan = dataclasses.replace(_plan(task), target=chosen.place).with_fields(
            target_node=there.node, target_storage=storage(here, there)
        )
        detail = {"host": there.host, "considered": chosen.decision.considered}
        name, now = "conductor_live_migrate_instance", clock.utcnow()
        step = Step(name, 0, started, now, "Success", detail=detail)
        ledger.record_decision(connection, operation, chosen.decision)
        ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
        migrations.set_status(
            connection,
            plan.migration_id,
            MigrationStatus.RUNNING,
            operation,
            dest_host=there.host,
            dest_node=there.node,
            dest_address=there.host_ip or None,
            claim=of_flavor(task.server.flavor, task.server.image_properties),
        )
        leases.advance(connection, operation, plan, "move", self._cloud.name, holding=True)
        return dataclasses.replace(
            task, operation=dataclasses.replace(operation, plan=plan, stage="move")
        )

    def _no_valid_host(self, task: Task, decision: Decision) -> None:
        why = decision.reason or "No host can take it."
        if task.operation.message:
            why = f"{why} {task.operation.message}"
        failure = Failure(
            Category.NO_VALID_HOST,
            f"{NO_VALID_HOST} {why}",
            "conductor_live_migrate_instance",
            host=task.server.host,
            owner_message=NO_VALID_HOST,
        )

        unwinding.begin(self._cloud, self.table(), task, failure, decision)

    def _move(self, task: Task) -> None:
        if self._is_aborted(task):
            unwinding.begin(self._cloud, self.table(), task, _aborted(task))
        elif not move_command.send_live(self._cloud, task):
            self._failed(task, silent(_plan(task).source.host))

    def _moved(self, task: Task, outcome: Moved) -> Task | None:
        """Take the agent's outcome: on, another host, another try, or back."""
        there = bool(outcome.node) and outcome.node == _plan(task).target.node
        if outcome.ok and there:
            return self._reach_end(task)
        if outcome.ok:
            text = "The VM was seen on its host, and was not moved."
            failure = Failure(Category.UNKNOWN_OUTCOME, text, host=task.server.host)
        else:
            failure = failure_of(outcome)
        if not there and self._is_aborted(task):
            unwinding.begin(self._cloud, self.table(), task, _aborted(task))
            return None
        if not there and self._wants_other_host(task, outcome):
            self._elsewhere(task, failure)
        else:
            self._failed(task, failure)
        return None

    def _reach_end(self, task: Task) -> Task:
        operation = task.operation
        plan = _plan(task)

        def work(connection: Transaction) -> Task:
            leases.reach_owned(
                *(connection, operation, plan, "settle"),
                *(self._cloud.name, self._cloud.lease_seconds),
            )
            status = MigrationStatus.POST_MIGRATING
            migrations.set_status(connection, plan.migration_id, status, operation)
            return task.at("settle")

        return self._cloud.store.run(work)

    def _settle(self, task: Task) -> None:
        """Move the claim, then the record. Raises Unavailable to be repeated later."""
        plan, server, operation = _plan(task), task.server, task.operation
        self._hold(task, str(plan.target.uuid), claimed=True)

        def work(connection: Transaction) -> None:
            facts, _ = registry.host(connection, str(plan.target.host), lock=True)
            server_groups.move_place(connection, server, plan.holder)
            self._ended(connection, task, facts)
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Server %s was moved to host %s.", server.uuid, plan.target.host)

    @staticmethod
    def _ended(connection: Transaction, task: Task, facts: HostFacts) -> None:
        """Record that it is on the host."""
        operation = task.operation
        close.settle(
            connection,
            task,
            host=facts.host,
            node=facts.node,
            availability_zone=facts.availability_zone,
        )
        status = MigrationStatus.COMPLETED
        migrations.set_status(connection, _plan(task).migration_id, status, operation, claim=None)

    def _hold(self, task: Task, provider: str, *, claimed: bool = False) -> None:
        """Have the server hold its size of one host, and the migration nothing.

        ``claimed`` is `claims.hold_both`'s.
        """
        server = task.server
        mine = {provider: of_flavor(server.flavor, server.image_properties)}
        try:
            fits = claims.hold_both(
                *(self._cloud.placement, server, mine, _plan(task).holder, {}), claimed=claimed
            )
        except GenerationConflict as error:
            raise Unavailable(error.message) from error
        if not fits:
            # The VM is there all the same; the audit reports what placement says.
            LOG.error("Placement refuses what server %s holds: %s.", server.uuid, mine)

    # --- failure

    def _is_aborted(self, task: Task) -> bool:
        with self._cloud.store.read() as connection:
            now = ledger.get(connection, task.operation.id)
        return now is not None and now.message == ABORTED

    def _wants_other_host(self, task: Task, outcome: Moved) -> bool:
        """Return whether to try another host: none was asked for, and nothing is left of the try.

        That is so if the agent refused before it touched anything, or the failure was undone. A
        lock is waited for: the VM's own refuses every host.
        """
        plan, failure = _plan(task), outcome.failure
        at_rest = outcome.node == plan.source.node and failure is not None and failure.clean
        few = len(plan.without) + 1 < int(self._cloud.conf.conductor.max_attempts)
        fatal = failure is not None and failure.verdict == Verdict.FATAL
        waits = failure is not None and verdict_of(failure) == Verdict.WAIT
        asked = plan.asked_host is not None or task.operation.ordered(Move).copy_disks is not None
        return at_rest and few and not fatal and not waits and not asked

    def _elsewhere(self, task: Task, failure: Failure) -> None:
        """Commit that another host is to be found; what this one held is given back then."""
        plan = _plan(task)
        without = (*plan.without, str(plan.target.host))
        following = dataclasses.replace(plan, target=NOWHERE, without=without)

        def work(connection: Transaction) -> None:
            ledger.record_failure(connection, task.operation, failure)
            server_groups.drop(connection, task.server, plan.holder)
            leases.reach(connection, task.operation, following, "claim")
            migrations.set_status(
                connection, plan.migration_id, MigrationStatus.PREPARING, task.operation
            )
            again = leases.next_attempt(connection, task.operation)
            ledger.save(connection, again.id, message=failure.message)
            leases.postpone(connection, again.id, 0.0)

        self._cloud.store.run(work)
        self._cloud.wake()
        host, uuid = plan.target.host, task.server.uuid
        LOG.info("Host %s can't take server %s: %s", host, uuid, failure.message)

    def _failed(self, task: Task, failure: Failure) -> None:
        unwinding.again_or_begin(self._cloud, self.table(), task, failure)

    def _on_deadline(self, task: Task) -> None:
        text = "The live migration did not end in time."
        if task.operation.message:
            text += f" It waited: {task.operation.message}"
        failure = Failure(Category.TASK_TIMEOUT, text, host=task.server.host)
        unwinding.begin(self._cloud, self.table(), task, failure)

    def _on_superseded(self, task: Task) -> None:
        """End it: another operation has the server, and gives back what the migration holds.

        Unless that came before a claim of ours: as long as none is committed, it is given back.
        """
        plan = _plan(task)
        if plan.target.host is None:
            self._destinations.release(plan.holder)
        close.overtaken(self._cloud, task)

    # --- undo

    def _look_where(self, task: Task) -> bool:
        """Have it seen where the VM is, once no migration runs; without an agent later."""
        if _plan(task).target.host is None:
            return True
        sent = move_command.send_live(self._cloud, task, settle=True)
        return close.later_unless(self._cloud, task, sent)

    def _seen_where(self, task: Task, outcome: Moved) -> bool:
        """End where it was seen; on the target it is looked after until its drive is in."""
        plan = _plan(task)
        if outcome.ok and outcome.node and outcome.node == plan.target.node:
            self._arrived_after_all(task)
            return False
        return close.again_unless_ok(self._cloud, task, outcome)

    def _arrived_after_all(self, task: Task) -> None:
        """End with the server on the target, though the migration counted as failed."""
        plan, operation = _plan(task), task.operation
        self._hold(task, str(plan.target.uuid))

        def work(connection: Transaction) -> None:
            facts, _ = registry.host(connection, str(plan.target.host), lock=True)
            server_groups.move_place(connection, task.server, plan.holder)
            self._ended(connection, task, facts)
            ledger.close(connection, operation.id, OperationState.DONE, operation.message)

        self._cloud.store.run(work)
        LOG.warning("Server %s is on host %s after all.", task.server.uuid, plan.target.host)

    def _release(self, task: Task) -> bool:
        """Hold the source only. Raises Unavailable to be repeated later."""
        self._hold(task, str(_plan(task).source.uuid))
        return True

    @staticmethod
    def _drop_place(connection: Transaction, task: Task, failure: Failure | None) -> Task:
        server_groups.drop(connection, task.server, _plan(task).holder)
        return task

    @staticmethod
    def _undone(connection: Transaction, task: Task) -> None:
        """End with the server where and as it was."""
        operation = task.operation
        number = _plan(task).migration_id
        aborted = operation.message == ABORTED
        status = MigrationStatus.CANCELLED if aborted else MigrationStatus.ERROR
        migrations.set_status(connection, number, status, operation, claim=None)
        close.as_before(connection, task)


def _aborted(task: Task) -> Failure:
    return Failure(Category.CREATION_FAILED, ABORTED, host=task.server.host, owner_message=ABORTED)


def _plan(task: Task) -> LiveMigrationPlan:
    return task.operation.planned(LiveMigrationPlan)

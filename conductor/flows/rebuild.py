"""Rebuild: the server's VM gets a new root disk, made from an image, on its own host.

The old disk stays beside the new one until that runs, so what fails is undone exactly; then the
old one goes, and there is no way back.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from common import clock
from common.failures import passes
from common.log import logger
from common.messages.commands import EndSwap, Swap
from common.messages.reports import Category, Failure, Outcome, Step
from common.messages.scheduling import Decision, RequestSpec
from common.states import OperationState, PowerState, TaskState, VmState
from conductor.cloud import Cloud, backoff, failure_of, placed
from conductor.engine import ends, unwinding
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.flows import build_command, guest_data
from conductor.plans import RebuildParams, RebuildPlan
from conductor.store import leases, registry, transitions
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction

LOG = logger(__name__)

GIVE_BACK = "give_back"
SETTLE = "settle"
#: Nova's words, which clients read
NO_VALID_HOST = "No valid host was found. There are not enough hosts available."


class RebuildFlow:
    """The flow of the action ``rebuild``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return the stages."""
        spawning = TaskState.REBUILD_SPAWNING
        back = Undo(GIVE_BACK, self._give_back, self._given_back)
        mapping = TaskState.REBUILD_BLOCK_DEVICE_MAPPING
        return Table(
            (
                Stage("check", self._check, shown=TaskState.REBUILDING),
                Stage("map_disk", self._map_disk, shown=mapping),
                Stage("swap", self._swap, self._swapped, spawning, undo=back),
                Stage(SETTLE, self._settle, self._settled, spawning, final=True),
            ),
            lost=functools.partial(ends.overtaken, self._cloud),
            late=self._late,
            undone=self._undone,
        )

    # --- the stages

    def _check(self, task: Task) -> Task | None:
        """Ask the scheduler whether the server's own host can run another image."""
        operation, server = task.operation, task.server
        plan = operation.planned(RebuildPlan)
        started, decision = clock.utcnow(), None
        if server.image_id != plan.former.get("image_id"):
            decision = self._decide(task)
            if decision.host is None:
                self._nowhere(task, decision)
                return None

        def work(connection: Transaction) -> Task:
            if decision is not None:
                ledger.record_decision(connection, operation, decision)
                detail = {"host": decision.host, "considered": decision.considered}
                now = clock.utcnow()
                name = "conductor_rebuild_server"
                step = Step(name, 0, started, now, "Success", detail=detail)
                ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
            return self._step_on(
                connection, task, plan, "map_disk", TaskState.REBUILD_BLOCK_DEVICE_MAPPING
            )

        return self._cloud.store.run(work)

    def _decide(self, task: Task) -> Decision:
        """Return the scheduler's decision about the server's host; its claim stays as it is."""
        server = task.server
        with self._cloud.store.read() as connection:
            home = build_command.home(connection, server.image_id, server.cluster)
        request = RequestSpec(
            server_uuid=server.uuid,
            project_id=server.project_id,
            user_id=server.user_id,
            vcpus=server.vcpus,
            memory_mib=server.memory_mib,
            disk_gib=server.disk_gib,
            image_id=server.image_id,
            image_properties=server.image_properties,
            extra_specs=dict(server.flavor.get("extra_specs") or {}),
            force_host=str(server.host),
            claimed=True,
            image_home=home,
        )
        return self._cloud.scheduler.preview(task.operation.ctxt, (request,))[0]

    def _nowhere(self, task: Task, decision: Decision) -> None:
        why = decision.reason or f"Host {task.server.host} can't run the image."
        failure = Failure(
            Category.NO_VALID_HOST,
            f"{NO_VALID_HOST} {why} Servers are rebuilt on their own host.",
            "conductor_rebuild_server",
            host=task.server.host,
            owner_message=NO_VALID_HOST,
        )
        self._refuse(task, failure, lambda c: ledger.record_decision(c, task.operation, decision))

    def _map_disk(self, task: Task) -> Task | None:
        """Locate the image in the server's cluster, and gather what its config drive says."""
        operation, server = task.operation, task.server
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, str(server.host))
            image = build_command.image(connection, server.image_id, facts, imported=True)
            nics = build_command.nics_of(connection, server.uuid)
        if image is None:
            text = f"Image {server.image_id} is not in cluster {facts.cluster}."
            self._refuse(task, Failure(Category.IMAGE_NOT_FOUND, text, host=server.host))
            return None
        plan = dataclasses.replace(operation.planned(RebuildPlan), image=image, nics=nics)
        return self._cloud.store.run(
            lambda c: self._step_on(c, task, plan, "swap", TaskState.REBUILD_SPAWNING)
        )

    def _step_on(
        self,
        connection: Transaction,
        task: Task,
        plan: RebuildPlan,
        stage: str,
        shown: TaskState,
    ) -> Task:
        moved = transitions.move(
            connection,
            task.server,
            operation_id=task.operation.id,
            vm_state=VmState(task.server.vm_state),
            task_state=shown,
        )
        leases.advance(connection, task.operation, plan, stage, self._cloud.name)
        operation = dataclasses.replace(task.operation, plan=plan, stage=stage)
        return dataclasses.replace(task, operation=operation, server=moved)

    def _swap(self, task: Task) -> None:
        operation, server = task.operation, task.server
        plan, asked = operation.planned(RebuildPlan), operation.asked(RebuildParams)
        where, worker = placed(operation), self._cloud.take_to(operation, str(server.host))
        if worker is None or where is None or operation.deadline is None:
            text = f"The agent of host {server.host} does not answer."
            self._failed(task, Failure(Category.NODE_UNHEALTHY, text, host=server.host))
            return
        command = Swap(
            operation.id,
            operation.attempt,
            server.uuid,
            where,
            operation.deadline,
            **build_command.of_server(server),
            image=plan.image,
            nics=plan.nics,
            config_drive=guest_data.config_drive(
                server, plan.nics, asked.admin_password, asked.files
            ),
            cloud=self._cloud.id,
            running=plan.was != VmState.STOPPED,
            former_properties=plan.former.get("image_properties") or {},
        )
        self._cloud.compute.swap(operation.ctxt, worker, command)

    def _swapped(self, task: Task, outcome: Outcome) -> Task | None:
        """Take the agent's outcome: the old disk may go, another attempt, or back."""
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return None
        operation = task.operation

        def work(connection: Transaction) -> None:
            leases.reach(connection, operation, operation.plan, SETTLE)
            ledger.save(
                connection,
                operation.id,
                **leases.owned(self._cloud.name, self._cloud.lease_seconds),
            )

        self._cloud.store.run(work)
        return task.at(SETTLE)

    def _settle(self, task: Task) -> None:
        if not self._send_end(task, keep=True):
            self._cloud.wait(task.operation, backoff(task.operation.attempt))

    def _settled(self, task: Task, outcome: Outcome) -> None:
        """End with the server as it was, but for its disk.

        An old disk that can't be removed stays with the VM, and goes with it.
        """
        operation = task.operation
        failure = outcome.failure
        if failure is not None and self._may_wait(task, failure):
            ends.again(self._cloud, operation, failure)
            return
        stopped = operation.planned(RebuildPlan).was == VmState.STOPPED
        seen = outcome.power_state
        if seen == PowerState.NOSTATE:
            seen = PowerState.SHUTDOWN if stopped else PowerState.RUNNING

        def work(connection: Transaction) -> None:
            if failure is not None:
                ledger.record_failure(connection, operation, failure)
            transitions.move(
                connection,
                task.server,
                operation_id=operation.id,
                vm_state=VmState.STOPPED if stopped else VmState.ACTIVE,
                task_state=None,
                power_state=seen,
                launched_at=clock.utcnow(),
            )
            message = None if failure is None else f"The old disk stays: {failure.message}"
            ledger.close(connection, operation.id, OperationState.DONE, message)

        self._cloud.store.run(work)
        LOG.info("Server is rebuilt.")

    # --- failure

    def _may_wait(self, task: Task, failure: Failure) -> bool:
        return passes(failure) and task.operation.attempt <= self._cloud.conf.conductor.max_waits

    def _failed(self, task: Task, failure: Failure) -> None:
        if self._may_wait(task, failure):
            ends.again(self._cloud, task.operation, failure)
        else:
            unwinding.begin(self._cloud, self.table(), task, failure)

    def _late(self, task: Task) -> None:
        text = "The rebuild did not end in time."
        if task.operation.message:
            text += f" It waited: {task.operation.message}"
        failure = Failure(Category.TASK_TIMEOUT, text, host=task.server.host)
        if task.shown == TaskState.REBUILD_SPAWNING:
            unwinding.begin(self._cloud, self.table(), task, failure)
        else:
            self._refuse(task, failure)

    def _refuse(
        self,
        task: Task,
        failure: Failure,
        also: Callable[[Transaction], None] = lambda _: None,
    ) -> None:
        """End before any agent acted: ERROR as in Nova, of the old image."""

        def work(connection: Transaction) -> None:
            also(connection)
            ledger.record_failure(connection, task.operation, failure)
            message = failure.message
            operation = dataclasses.replace(task.operation, message=message)
            self._undone(connection, dataclasses.replace(task, operation=operation))

        self._cloud.store.run(work)
        LOG.warning("Rebuild failed (%s): %s", failure.category, failure.message)

    def _give_back(self, task: Task) -> bool:
        if not self._send_end(task, keep=False):
            self._cloud.wait(task.operation, backoff(task.operation.attempt))
        return False

    def _given_back(self, task: Task, outcome: Outcome) -> bool:
        if not outcome.ok:
            ends.again(self._cloud, task.operation, outcome.failure)
        return outcome.ok

    def _send_end(self, task: Task, *, keep: bool) -> bool:
        """Send the agent the end of the swap; return whether there was one to send it to."""
        operation = task.operation
        worker = self._cloud.take_to(operation, str(task.server.host))
        where = placed(operation)
        if worker is None or where is None:
            return False
        command = EndSwap(
            operation.id,
            operation.attempt,
            task.server.uuid,
            where,
            clock.after(self._cloud.conf.conductor.action_timeout_seconds),
            keep=keep,
            running=operation.planned(RebuildPlan).was != VmState.STOPPED,
        )
        self._cloud.compute.end_swap(operation.ctxt, worker, command)
        return True

    @staticmethod
    def _undone(connection: Transaction, task: Task) -> None:
        """End in ERROR, as Nova does, with the image and the keys that its disk was made with."""
        operation = task.operation
        transitions.move(
            connection,
            task.server,
            operation_id=operation.id,
            vm_state=VmState.ERROR,
            task_state=None,
            **operation.planned(RebuildPlan).former,
        )
        ledger.close(connection, operation.id, OperationState.FAILED, operation.message)

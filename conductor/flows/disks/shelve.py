"""Shelve and unshelve servers: the VM is parked where it is, and gives back all but its disk.

Nothing is copied: an image without data lists the server while it is shelved. A suspended server
keeps its memory.
"""

from __future__ import annotations

import dataclasses

from common import clock, ids
from common.failures import passes
from common.log import logger
from common.messages.commands import Placed, Power, PowerAction
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, PowerState, TaskState, VmState, found_well
from conductor.cloud import Cloud, backoff, failure_of
from conductor.engine import ends, unwinding
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.store import leases, registry, server_images, transitions
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction
from conductor.sync import allocations, claims

LOG = logger(__name__)

NO_VALID_HOST = "No valid host was found."


class _Parking:
    """What shelving and unshelving have in common."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _send(self, task: Task, action: PowerAction) -> bool:
        """Send a command; return whether there was an agent to send it."""
        operation, server = task.operation, task.server
        worker = self._cloud.take_to(operation, str(server.host))
        if worker is None:
            return False
        where = Placed(str(server.host), server.cluster or "", server.node or "", server.vmid or 0)
        late = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        deadline = late if task.unwinding or operation.deadline is None else operation.deadline
        command = Power(
            operation.id, operation.attempt, server.uuid, where, deadline, action=action
        )
        self._cloud.compute.power(operation.ctxt, worker, command)
        return True

    def _hold(self, task: Task, amounts: dict[str, int]) -> bool:
        """Hold exactly this of the server's host. Raises Unavailable."""
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, str(task.server.host))
        if not amounts:
            self._cloud.placement.release(task.server.uuid)
            return True
        return claims.hold(self._cloud.placement, task.server, facts.uuid, amounts)

    def _no_agent(self, task: Task) -> Failure:
        host = str(task.server.host)
        text = f"The agent of host {host} does not answer."
        return Failure(Category.NODE_UNHEALTHY, text, host=host)

    def _lost(self, task: Task) -> None:
        ends.overtaken(self._cloud, task)


class ShelveFlow(_Parking):
    """The flow of ``shelve`` and of ``shelveOffload``, which is its last stage."""

    def table(self, *, stop: bool = True) -> Table[Task]:
        """Return the stages; behind the stop there is no way but forward."""
        offload = Stage("offload", self._offload, shown=TaskState.SHELVING_OFFLOADING, final=True)
        if not stop:
            return Table((offload,), lost=self._lost)
        first = Stage("stop", self._stop, self._stopped, TaskState.SHELVING)
        return Table((first, offload), lost=self._lost, late=self._late)

    def _stop(self, task: Task) -> Task | None:
        if task.server.vm_state == VmState.SUSPENDED:
            return self._park(task, None)
        if not self._send(task, PowerAction.STOP):
            self._failed(task, self._no_agent(task), PowerState.NOSTATE)
        return None

    def _stopped(self, task: Task, outcome: Outcome) -> Task | None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome), outcome.power_state)
            return None
        return self._park(task, outcome.power_state)

    def _park(self, task: Task, seen: int | None) -> Task | None:
        """Store the image that lists it, and give back what it claims unless it is to keep it.

        ``seen`` is the power state that the agent saw; None: it was not asked.
        """
        offloads = self._cloud.conf.conductor.shelved_offload_time == 0
        operation, server = task.operation, task.server

        def work(connection: Transaction) -> Task:
            server_images.list_parked(connection, ids.new_uuid(), server)
            moved = transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState.SHELVED,
                task_state=TaskState.SHELVING_OFFLOADING if offloads else None,
                power_state=PowerState.SUSPENDED if seen is None else seen,
            )
            if offloads and seen is None:
                leases.advance(connection, operation, operation.plan, "offload", self._cloud.name)
            elif offloads:
                leases.reach(connection, operation, operation.plan, "offload")
                lease = leases.owned(self._cloud.name, self._cloud.lease_seconds)
                ledger.save(connection, operation.id, **lease)
            else:
                ledger.close(connection, operation.id, OperationState.DONE)
            return dataclasses.replace(task.at("offload"), server=moved)

        parked = self._cloud.store.run(work)
        LOG.info("Server %s is shelved.", server.uuid)
        return parked if offloads else None

    def _offload(self, task: Task) -> None:
        """Give back all but the disk. Raises Unavailable to be repeated."""
        self._hold(task, allocations.parked(task.server))
        ends.done(self._cloud, task, VmState.SHELVED_OFFLOADED)
        LOG.info("Server %s is offloaded.", task.server.uuid)

    def _failed(self, task: Task, failure: Failure, seen: int) -> None:
        operation = task.operation
        if passes(failure) and operation.attempt <= self._cloud.conf.conductor.max_waits:
            ends.again(self._cloud, operation, failure)
            return
        before = task.server.vm_state
        if seen == PowerState.NOSTATE:
            ends.failed(self._cloud, task, failure, VmState(before))
        else:
            well = found_well(before, seen)
            ends.failed(self._cloud, task, failure, well, power_state=seen)

    def _late(self, task: Task) -> None:
        failure = Failure(Category.TASK_TIMEOUT, "It was not stopped in time.")
        ends.failed(self._cloud, task, failure, VmState(task.server.vm_state))


class UnshelveFlow(_Parking):
    """The flow of ``unshelve``: on the server's own host, where its disk is."""

    def table(self) -> Table[Task]:
        """Return the stages: claim, then start."""
        release = Undo[Task]("release_claim", self._release)
        stop = Undo[Task]("stop_again", self._stop_again, self._stopped_again)
        shown = TaskState.UNSHELVING
        return Table(
            (
                Stage("claim", self._claim, shown=shown, undo=release),
                Stage("start", self._start, self._started, shown, undo=stop),
            ),
            lost=self._lost,
            late=self._late,
            undone=self._undone,
        )

    def _claim(self, task: Task) -> Task | None:
        server, operation = task.server, task.operation
        if not self._hold(task, allocations.whole(server)):
            failure = Failure(
                Category.NO_VALID_HOST,
                f"{NO_VALID_HOST} Host {server.host}, where the disk is, has not enough left: "
                f"{allocations.whole(server)} are asked for. It is unshelved there only.",
                "conductor_unshelve_instance",
                host=server.host,
                owner_message=f"{NO_VALID_HOST} The host of its disk has not enough left.",
            )
            self._unwind(task, failure)
            return None
        self._cloud.store.run(
            lambda c: leases.advance(c, operation, operation.plan, "start", self._cloud.name)
        )
        return task.at("start")

    def _start(self, task: Task) -> None:
        if not self._send(task, _way_back(task)):
            self._failed(task, self._no_agent(task))

    def _started(self, task: Task, outcome: Outcome) -> None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return
        operation, server = task.operation, task.server

        def work(connection: Transaction) -> None:
            server_images.forget_parked(connection, server.uuid)
            transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState.ACTIVE,
                task_state=None,
                power_state=outcome.power_state,
            )
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Server %s is unshelved.", server.uuid)

    # --- failure

    def _failed(self, task: Task, failure: Failure) -> None:
        operation = task.operation
        if passes(failure) and operation.attempt <= self._cloud.conf.conductor.max_waits:
            ends.again(self._cloud, operation, failure)
        else:
            self._unwind(task, failure)

    def _late(self, task: Task) -> None:
        self._unwind(task, Failure(Category.TASK_TIMEOUT, "It was not unshelved in time."))

    def _unwind(self, task: Task, failure: Failure) -> None:
        unwinding.begin(self._cloud, self.table(), task, failure)

    def _stop_again(self, task: Task) -> bool:
        """Stop it: a start that failed may have started it all the same."""
        if _way_back(task) == PowerAction.RESUME:
            return True  # a stop would lose its memory; one that runs is seen by the audit
        if not self._send(task, PowerAction.STOP):
            self._cloud.wait(task.operation, backoff(task.operation.attempt))
        return False

    def _stopped_again(self, task: Task, outcome: Outcome) -> bool:
        if not outcome.ok:
            ends.again(self._cloud, task.operation, outcome.failure)
        return outcome.ok

    def _release(self, task: Task) -> bool:
        """Hold again what it held. Raises Unavailable to be repeated."""
        self._hold(task, allocations.wanted(task.server))
        return True

    @staticmethod
    def _undone(connection: Transaction, task: Task) -> None:
        """End with the server as it was."""
        operation = task.operation
        transitions.move(
            connection,
            task.server,
            operation_id=operation.id,
            vm_state=VmState(task.server.vm_state),
            task_state=None,
        )
        ledger.close(connection, operation.id, OperationState.FAILED, operation.message)


def _way_back(task: Task) -> PowerAction:
    """Return how its VM runs again."""
    saved = task.server.power_state == PowerState.SUSPENDED
    return PowerAction.RESUME if saved else PowerAction.START

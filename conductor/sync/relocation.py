"""The search for a VM that isn't where the record says: it moved, vanished, or is there after all.

The bulk list only says where to look. Only what was seen on the VM itself is stored: its marks
prove it the server's. Host, zone and allocation follow; no VM is created or changed.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from common import clock
from common.log import logger
from common.messages.facts import Inspection
from common.messages.reports import Category, Failure, Step
from common.resources.states import OperationState, PowerState, VmState, as_seen, found_well
from conductor.cloud import Cloud
from conductor.engine import close
from conductor.engine.stages import Stage, Table, Task
from conductor.plans import FollowPlan, Place
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import transitions
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations
from conductor.store.servers import vm_states as store
from conductor.store.transactions import Transaction
from conductor.sync import whereabouts
from conductor.sync.drift import Saw
from conductor.sync.move_allocation import MoveAllocation

LOG = logger(__name__)

#: the stage after the VM's host is known: the flow can't turn back
MOVE_ALLOCATION = "move_allocation"


class Follow:
    """The flow of ``InternalAction.FOLLOW``: the conductor holds the lease and calls an agent."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._move_allocation = MoveAllocation(cloud)

    def table(self) -> Table[Task]:
        """Look closely and store the result; then move the allocation."""
        return Table(
            (
                Stage("look", self._look),
                Stage(MOVE_ALLOCATION, self._move_allocation.move, final=True),
            ),
            on_superseded=functools.partial(close.overtaken, self._cloud),
            on_deadline=self._on_deadline,
            owns=False,
            was_superseded=self._was_superseded,
        )

    def _was_superseded(self, task: Task) -> bool:
        """Return whether another operation acts on the server: then its result counts."""
        if task.server.deleted_at is not None:
            return True
        with self._cloud.store.read() as connection:
            return not store.is_idle(connection, task.server.uuid, task.operation.id)

    def _on_deadline(self, task: Task) -> None:
        text, number = "The VM could not be looked at in time.", task.operation.id
        self._cloud.store.run(lambda c: ledger.close(c, number, OperationState.FAILED, text))

    def _look(self, task: Task) -> Task | None:
        operation, server = task.operation, task.server
        found = self._inspect(operation, server)
        if found.failure is None:
            return self._conclude(operation, server, found)
        LOG.warning("Server %s: %s", server.uuid, found.failure.message)
        close.again(self._cloud, operation, None)
        return None

    def _inspect(self, operation: Operation, server: Server) -> Inspection:
        """Return where it was seen, and where it was. Raises Unavailable if no worker answers."""
        was = server.node
        seen = operation.plan.target.node or was
        found = whereabouts.inspect(self._cloud, operation.ctxt, server, seen)
        if found.exists or found.failure is not None or seen == was:
            return found
        return whereabouts.inspect(self._cloud, operation.ctxt, server, was)

    # --- what was seen

    def _conclude(self, operation: Operation, server: Server, found: Inspection) -> Task | None:
        if not found.exists:
            self._record_missing(operation, server, found, Saw.VANISHED)
        elif not found.ours or found.kind != "vm":
            self._record_missing(operation, server, found, Saw.FOREIGN)
        elif found.node == server.node and server.vm_state != VmState.ERROR:
            self._record_unmoved(operation, server, found)
        else:
            return self._moved(operation, server, found)
        return None

    def _record_unmoved(self, operation: Operation, server: Server, found: Inspection) -> None:
        """Store that the VM is where it was: only its power state may differ."""

        def work(connection: Transaction) -> None:
            self._record(connection, operation, server, found, "Success")
            becomes = as_seen(server.vm_state, found.power_state)
            if (becomes, found.power_state) != (server.vm_state, server.power_state):
                transitions.move(
                    connection,
                    server,
                    operation_id=operation.id,
                    vm_state=becomes,
                    task_state=None,
                    takes_over=True,
                    power_state=found.power_state,
                )
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)

    def _moved(self, operation: Operation, server: Server, found: Inspection) -> Task | None:
        """Store the new host, node and zone; return the task that moves the allocation."""
        facts = whereabouts.host_of(self._cloud, str(server.cluster), found.node)
        if facts is None:
            text = (
                f"Its VM is on node {found.node} of cluster {server.cluster}, "
                "which no agent has reported."
            )
            self._unmanaged(operation, server, found, text)
            return None
        vm_state = self._vm_state(server, found)
        there = Place(facts.host, facts.uuid, server.cluster, facts.node, server.vmid)
        plan = dataclasses.replace(operation.planned(FollowPlan), target=there, saw=Saw.MOVED)

        def work(connection: Transaction) -> Task:
            now, broken = whereabouts.arrive(
                *(connection, server, facts, operation.id, vm_state, found.power_state),
                takes_over=True,
            )
            more = {} if broken is None else {"group": broken}
            self._record(connection, operation, server, found, "Success", **more)
            # From here on others may act on the server: only its allocation is still to move.
            state = OperationState.UNWINDING
            ledger.save(connection, operation.id, plan=plan, state=state, stage=MOVE_ALLOCATION)
            return Task(dataclasses.replace(operation, plan=plan, state=state), now)

        task = self._cloud.store.run(work)
        LOG.info("Server %s has moved to %s; its record is updated.", server.uuid, facts.host)
        return task

    def _vm_state(self, server: Server, found: Inspection) -> VmState:
        """Return the state as seen. A server in ERROR gets it too if its VM had vanished, or once
        ran and is not locked."""
        unlocked = found.lock is None or found.power_state == PowerState.SUSPENDED
        well = server.launched_at is not None and unlocked
        if server.vm_state == VmState.ERROR and (well or self._had_vanished(server)):
            with self._cloud.store.read() as connection:
                resize = migrations.finished(connection, server.uuid)
            if resize is not None:
                return VmState.RESIZED
            return found_well(server.vm_state, found.power_state)
        return as_seen(server.vm_state, found.power_state)

    def _had_vanished(self, server: Server) -> bool:
        with self._cloud.store.read() as connection:
            last = ledger.get(connection, server.operation_id or 0)
        plan = last.plan if last is not None else None
        return isinstance(plan, FollowPlan) and plan.saw in (Saw.VANISHED, Saw.FOREIGN)

    def _unmanaged(
        self, operation: Operation, server: Server, found: Inspection, text: str
    ) -> None:
        failure = Failure(Category.CONFIGURATION, text, "conductor_follow_vm", server.host)

        def work(connection: Transaction) -> None:
            self._record(connection, operation, server, found, "Error")
            self._end(
                connection, operation, server, VmState(server.vm_state), failure, Saw.UNMANAGED
            )

        self._cloud.store.run(work)
        LOG.error("Server %s: %s", server.uuid, text)

    def _record_missing(
        self, operation: Operation, server: Server, found: Inspection, saw: Saw
    ) -> None:
        """Set ERROR with a fault. Nothing is released: the VM may come back."""
        failure = _fault(server, found, saw)

        def work(connection: Transaction) -> None:
            self._record(connection, operation, server, found, "Error")
            self._end(connection, operation, server, VmState.ERROR, failure, saw, power_state=0)

        self._cloud.store.run(work)
        LOG.error("Server %s is in ERROR: %s", server.uuid, failure.message)

    @staticmethod
    def _end(
        connection: Transaction,
        operation: Operation,
        server: Server,
        vm_state: VmState,
        failure: Failure,
        saw: Saw,
        **values: int,
    ) -> None:
        transitions.move(
            connection,
            server,
            operation_id=operation.id,
            vm_state=vm_state,
            task_state=None,
            takes_over=True,
            **values,
        )
        ledger.record_failure(connection, operation, failure)
        ledger.save(
            connection,
            operation.id,
            plan=dataclasses.replace(operation.planned(FollowPlan), saw=saw),
        )
        ledger.close(connection, operation.id, OperationState.FAILED, failure.message)

    @staticmethod
    def _record(
        connection: Transaction,
        operation: Operation,
        server: Server,
        found: Inspection,
        result: str,
        **more: str,
    ) -> None:
        detail: dict[str, Any] = {
            "recorded": server.node,
            "found": found.node if found.exists else "nowhere",
            "ours": found.ours,
            "power_state": PowerState(found.power_state).name,
            **more,
        }
        if found.marked_by not in (None, server.uuid):
            detail["marked_by"] = found.marked_by
        now = clock.utcnow()
        step = Step("conductor_follow_vm", 0, operation.started_at, now, result, detail=detail)
        ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])


def _fault(server: Server, found: Inspection, saw: Saw) -> Failure:
    where = f"VM {server.vmid} of cluster {server.cluster}"
    if saw is Saw.VANISHED:
        text = (
            f"{where} is gone: the whole cluster answers, its node {server.node} included, "
            "and no node lists it. It is not created again: delete the server, or restore the VM."
        )
    elif found.ours:
        text = f"{where} is a {found.kind} now: it can't run any more. It was not touched."
    else:
        whose = f"that of server {found.marked_by}" if found.marked_by else "not ours"
        text = (
            f"{where} belongs to somebody else: the VM on {found.node} is {whose}. "
            "It was not touched."
        )
    return Failure(Category.VANISHED, text, "conductor_follow_vm", server.host)

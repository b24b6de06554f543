"""What a resize, its confirmation and its reversion have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common import clock
from common.messages.commands import Shape, Size
from common.messages.reports import Failure
from common.resources.migrations import MigrationStatus
from common.resources.states import OperationState, VmState
from conductor.cloud import Cloud, placed
from conductor.engine import close
from conductor.engine.stages import Task
from conductor.plans import ResizePlan
from conductor.rpc.servers.flavors import claimed_gib
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.servers import migrations
from conductor.store.transactions import Transaction

Flavor = Mapping[str, Any]


def sizes(flavor: Flavor) -> dict[str, Any]:
    """Return the columns of a server that its flavor decides."""
    return {
        "vcpus": flavor["vcpus"],
        "memory_mib": flavor["memory_mib"],
        "disk_gib": claimed_gib(flavor),
    }


def send(cloud: Cloud, task: Task, *, forward: bool, starts: bool = True) -> bool:
    """Send the VM its new size, or its old one; return whether there was an agent to send it.

    ``starts``: it is to run then, if it ran before.
    """
    operation, plan = task.operation, task.operation.planned(ResizePlan)
    where = placed(operation)
    if where is None:
        return False
    new, old = _size(plan.new), _size(plan.old)
    late = clock.after(cloud.conf.conductor.action_timeout_seconds)
    command = Shape(
        *operation.about(
            where, late if task.unwinding or operation.deadline is None else operation.deadline
        ),
        size=new if forward else old,
        former=old if forward else new,
        running=starts and plan.was == VmState.ACTIVE,
        image_properties=task.server.image_properties,
    )
    return cloud.send(operation, command)


def reach(cloud: Cloud, task: Task, stage: str) -> Task:
    """Commit that the agent has finished its stage, and take the lease for the next stage."""
    operation = task.operation

    def work(connection: Transaction) -> None:
        leases.reach_owned(
            connection, operation, operation.plan, stage, cloud.name, cloud.lease_seconds
        )

    cloud.store.run(work)
    return task.at(stage)


def done(
    cloud: Cloud,
    task: Task,
    vm_state: VmState,
    status: MigrationStatus,
    also: Callable[[Transaction], None] = lambda _: None,
    **values: Any,
) -> None:
    """End a successful operation, and store how far the resize is; ``values`` are columns.

    ``also`` writes what belongs to it, first.
    """

    def work(connection: Transaction) -> None:
        also(connection)
        _end(connection, task, vm_state, status, values)
        ledger.close(connection, task.operation.id, OperationState.DONE)

    cloud.store.run(work)


def failed(
    cloud: Cloud, task: Task, failure: Failure, vm_state: VmState, status: MigrationStatus
) -> None:
    """End a failed operation, and store what becomes of the resize."""

    def work(connection: Transaction) -> None:
        _end(connection, task, vm_state, status, {})
        close.close_failed(connection, task.operation, failure)

    cloud.store.run(work)


def _end(
    connection: Transaction,
    task: Task,
    vm_state: VmState,
    status: MigrationStatus,
    values: dict[str, Any],
) -> None:
    operation = task.operation
    close.settle(connection, task, vm_state, **values)
    number = operation.planned(ResizePlan).migration_id
    migrations.set_status(connection, number, status, operation)


def _size(flavor: Flavor) -> Size:
    return Size(flavor["vcpus"], flavor["memory_mib"], flavor.get("extra_specs") or {})

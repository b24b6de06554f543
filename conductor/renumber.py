"""VMIDs of builds that failed: given back, set aside with the reason, or changed for another."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from common.failures import Verdict, verdict_of
from common.messages.reports import Failure
from common.states import TaskState, VmState
from conductor import leases, lifecycle
from conductor.cloud import next_attempt
from conductor.store import operations as ledger
from conductor.store import vmids
from conductor.store.operations import Operation, Plan
from conductor.store.servers import Server


def give_back(connection: sa.Connection, plan: Plan, failure: Failure) -> None:
    """The build needs its VMID no more. One in doubt is quarantined, with the reason."""
    if plan.vmid is None or plan.cluster is None:
        return
    doubtful = verdict_of(failure) == Verdict.QUARANTINE or failure.left
    if doubtful:
        vmids.quarantine(connection, plan.cluster, plan.vmid, failure.message)
    else:
        vmids.free(connection, plan.cluster, plan.vmid)


def another(
    connection: sa.Connection, operation: Operation, server: Server, failure: Failure
) -> None:
    """The next attempt: the same host, with another VMID; this one is set aside.

    Raises Unavailable when the band is used up, StaleTransition when another one was faster.
    """
    plan = operation.plan
    ledger.record_failure(connection, operation, failure)
    following = next_attempt(connection, operation)
    give_back(connection, plan, failure)
    vmid = vmids.reserve(connection, str(plan.cluster), server.uuid, operation.id)
    lifecycle.move(
        connection,
        server,
        operation_id=operation.id,
        vm_state=VmState.BUILDING,
        task_state=TaskState.SPAWNING,
        vmid=vmid,
    )
    ledger.save(connection, following.id, plan=dataclasses.replace(plan, vmid=vmid))
    leases.postpone(connection, following.id, 0)

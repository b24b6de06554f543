"""VMIDs of failed builds: released, quarantined with the reason, or replaced."""

from __future__ import annotations

import dataclasses

from common.failures import Verdict, verdict_of
from common.messages.reports import Category, Failure
from common.resources.states import TaskState, VmState
from conductor.plans import CreatePlan, Place
from conductor.store.ledger import leases, transitions
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import vmids
from conductor.store.servers.vmids import BandExhausted
from conductor.store.transactions import Transaction

WIDER = "Give the cluster a wider band (vmid_low, vmid_high), or see: micronova vmid list"


def exhausted(failure: Failure, error: BandExhausted) -> Failure:
    """Return the failure of a build that needs another VMID if none is free. Pure."""
    return dataclasses.replace(
        failure,
        category=Category.CONFIGURATION,
        message=f"{error.message} The failure with the last VMID: {failure.message}",
        remedy=WIDER,
        verdict=Verdict.OTHER_CLUSTER.value,
    )


def give_back(
    connection: Transaction, target: Place, failure: Failure, operation_id: int | None = None
) -> None:
    """Release the build's VMID; quarantine it, with the reason, if it may be in use.

    ``operation_id``: the build that reserved it; a VMID that a foreign VM had already is then
    recorded as refused.
    """
    if target.vmid is None or target.cluster is None:
        return
    if failure.refused and operation_id is not None:
        vmids.refuse(connection, target.cluster, target.vmid, operation_id)
    doubtful = failure.refused or verdict_of(failure) == Verdict.QUARANTINE or failure.left
    if doubtful:
        vmids.quarantine(connection, target.cluster, target.vmid, failure.message)
    else:
        vmids.free(connection, target.cluster, target.vmid)


def another(
    connection: Transaction, operation: Operation, server: Server, failure: Failure
) -> None:
    """Begin the next attempt on the same host with another VMID; quarantine this one.

    A VMID that others had already doesn't count as an attempt: deadline and band limit that.
    Raises BandExhausted, and StaleTransition when another process was faster.
    """
    plan = operation.planned(CreatePlan)
    ledger.record_failure(connection, operation, failure)
    following = leases.next_attempt(connection, operation)
    give_back(connection, plan.target, failure, operation.id)
    vmid = vmids.reserve(connection, str(plan.target.cluster), server.uuid, operation.id)
    transitions.move(
        connection,
        server,
        operation_id=operation.id,
        vm_state=VmState.BUILDING,
        task_state=TaskState.SPAWNING,
        vmid=vmid,
    )
    refusals = plan.refusals + failure.refused
    plan = dataclasses.replace(plan.with_vmid(vmid), refusals=refusals)
    ledger.save(connection, following.id, plan=plan)
    leases.postpone(connection, following.id, 0)

"""Ends a cold move where the VM is: the claims, then the record, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import GenerationConflict, Unavailable
from common.log import logger
from common.resources.migrations import MigrationStatus
from common.resources.states import OperationState, PowerState, VmState
from conductor.cloud import Cloud
from conductor.engine import close
from conductor.engine.stages import Task
from conductor.plans import ResizePlan
from conductor.store.hosts import registry
from conductor.store.ledger import operations as ledger
from conductor.store.servers import migrations, server_groups
from conductor.store.transactions import Transaction
from conductor.sync import claims

LOG = logger(__name__)

ByProvider = Mapping[str, Mapping[str, int]]


def settle(
    cloud: Cloud,
    task: Task,
    mine: ByProvider,
    held: ByProvider,
    vm_state: VmState,
    status: MigrationStatus,
    *,
    claim: Mapping[str, int] | None,
    **columns: Any,
) -> None:
    """Have the server hold ``mine`` and its migration ``held``, and end with the server on the
    plan's target.

    ``claim`` is what the record says that it holds while the migration is open. A migration that
    holds nothing more has no place in a group either. Raises Unavailable to be repeated later.
    """
    operation = task.operation
    plan = operation.planned(ResizePlan)
    # As long as the migration shall hold something it has what was claimed for it.
    hold(cloud, task, mine, plan.holder, held, claimed=bool(held))
    runs = plan.was == VmState.ACTIVE

    def work(connection: Transaction) -> None:
        facts, _ = registry.host(connection, str(plan.target.host), lock=True)
        if not held:
            server_groups.drop(connection, task.server, plan.holder)
        close.settle(
            connection,
            task,
            vm_state,
            host=facts.host,
            node=facts.node,
            availability_zone=facts.availability_zone,
            power_state=PowerState.RUNNING if runs else PowerState.SHUTDOWN,
            **columns,
        )
        migrations.set_status(connection, plan.migration_id, status, operation, claim=claim)
        ledger.close(connection, operation.id, OperationState.DONE)

    cloud.store.run(work)


def hold(
    cloud: Cloud,
    task: Task,
    mine: ByProvider,
    holder: str,
    held: ByProvider,
    *,
    claimed: bool = False,
) -> None:
    """Have both hold exactly this; see `claims.hold_both`. Raises Unavailable to be repeated.

    If placement refuses, as a host's inventory has shrunk since, nothing changes: the VM is where
    it is, and the audit reports and heals the allocations.
    """
    try:
        fits = claims.hold_both(cloud.placement, task.server, mine, holder, held, claimed=claimed)
    except GenerationConflict as error:
        raise Unavailable(error.message) from error
    if not fits:
        LOG.error("Placement refuses what server %s holds: %s.", task.server.uuid, dict(mine))

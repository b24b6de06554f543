"""The builds of a create with ``min_count``, until hosts are decided for all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import sqlalchemy as sa

from common import clock
from common.errors import StaleTransition
from common.resources.states import OPEN_STATES, VmState
from conductor.plans import CreateParams, CreatePlan
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from db.schema import operations, servers


def is_undecided(operation: Operation) -> bool:
    """Return whether it is not known yet if there are ``min_count`` hosts."""
    if not isinstance(operation.plan, CreatePlan) or operation.plan.too_few is not None:
        return False
    return operation.asked(CreateParams).min_count > 1 and operation.plan.target.host is None


def take(
    connection: sa.Connection, operation: Operation, owner: str, lease_seconds: float
) -> tuple[Operation, ...]:
    """Take the leases of all undecided builds of the create and return these builds.

    Only the first build's owner gets them, from owners that only wait; for another build the
    answer is empty. Servers with a later operation are left out. Raises StaleTransition when
    another conductor has the first build by now.
    """
    columns = operations.c
    found = connection.execute(
        sa.select(*ledger.FIELDS)
        .where(
            columns.request_id == operation.request_id,
            columns.project_id == operation.project_id,
            columns.action == operation.action,
            columns.state.in_(OPEN_STATES),
        )
        .order_by(columns.id)
        .with_for_update()
    )
    bound = [one for one in (ledger.from_row(row._mapping) for row in found) if is_undecided(one)]
    building = set(
        connection.scalars(
            sa.select(servers.c.operation_id).where(
                servers.c.uuid.in_([one.server_uuid for one in bound]),
                servers.c.vm_state == VmState.BUILDING,
            )
        )
    )
    batch = [one for one in bound if one.id in building]
    if not batch or batch[0].id != operation.id:
        return ()
    if batch[0].lease_owner != owner:
        raise StaleTransition(operation_id=operation.id)
    lease = leases.owned(owner, lease_seconds)
    connection.execute(
        operations.update()
        .where(columns.id.in_([one.id for one in batch]))
        .values(updated_at=clock.utcnow(), **lease)
    )
    until = lease["lease_expires_at"]
    return tuple(
        dataclasses.replace(one, lease_owner=owner, lease_expires_at=until) for one in batch
    )


def decide(
    connection: sa.Connection, batch: Sequence[Operation], owner: str, too_few: str
) -> list[Operation]:
    """Store for all of them whether ``min_count`` is met; see ``CreatePlan.too_few``.

    Raises StaleTransition when another conductor has one of them by now.
    """
    columns, has_volumes = operations.c, batch[0].planned(CreatePlan).has_volumes
    plan = CreatePlan(has_volumes=has_volumes, too_few=too_few)
    changed = connection.execute(
        operations.update()
        .where(columns.id.in_([one.id for one in batch]), columns.lease_owner == owner)
        .values(updated_at=clock.utcnow(), plan=plan)
    )
    if changed.rowcount != len(batch):
        raise StaleTransition(operation_id=batch[0].id)
    return [dataclasses.replace(one, plan=plan) for one in batch]


def wait(connection: sa.Connection, operation: Operation, owner: str, seconds: float) -> None:
    """Release a build that isn't the first, unless the first one's owner has taken it."""
    columns = operations.c
    connection.execute(
        operations.update()
        .where(
            columns.id == operation.id,
            columns.lease_owner == owner,
            columns.lease_expires_at == operation.lease_expires_at,
        )
        .values(**leases.unowned(clock.after(seconds)))
    )


def release_leases(
    connection: sa.Connection, batch: Sequence[Operation], owner: str, seconds: float = 0
) -> None:
    """Release the leases that the owner still has; the operations are due after these seconds."""
    columns = operations.c
    connection.execute(
        operations.update()
        .where(
            columns.id.in_([one.id for one in batch]),
            columns.state.in_(OPEN_STATES),
            columns.lease_owner == owner,
        )
        .values(**leases.unowned(clock.after(seconds) if seconds else None))
    )

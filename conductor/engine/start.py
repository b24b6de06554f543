"""How operations begin: with this conductor's lease and their action's deadline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.context import RequestContext
from common.messages.reports import Step
from common.resources.states import ACTIONS, InternalAction, ResourceType, VmState
from common.resources.volumes import VolumeAction
from conductor.cloud import Cloud
from conductor.plans import NOTHING_ASKED, NOTHING_PLANNED, Params, Plan
from conductor.store.ledger import leases, transitions
from conductor.store.ledger import operations as ledger
from conductor.store.ledger.operations import NewOperation
from conductor.store.ledger.transitions import Move
from conductor.store.records import Operation, Resource, Server
from conductor.store.transactions import Transaction

#: the option of ``[conductor]`` with an action's time limit, if it has its own
_TIMEOUTS = {
    "create": "build_timeout_seconds",
    "rebuild": "build_timeout_seconds",
    "live-migration": "live_migration_timeout_seconds",
    "rescue": "build_timeout_seconds",
    "migrate": "move_timeout_seconds",
    "evacuate": "move_timeout_seconds",
    "resize": "move_timeout_seconds",
    "revertResize": "move_timeout_seconds",
    "unshelve": "move_timeout_seconds",
    InternalAction.CACHE_IMAGE: "build_timeout_seconds",
    InternalAction.STORE_IMAGE: "store_image_timeout_seconds",
    "createImage": "copy_timeout_seconds",
    "createBackup": "copy_timeout_seconds",
    VolumeAction.RETYPE: "copy_timeout_seconds",
    VolumeAction.UPLOAD: "copy_timeout_seconds",
    VolumeAction.BACK_UP: "backup_timeout_seconds",
    VolumeAction.RESTORE: "backup_timeout_seconds",
    InternalAction.DRAIN: "bulk_migration_timeout_seconds",
    InternalAction.REBALANCE: "bulk_migration_timeout_seconds",
}


@dataclass(frozen=True)
class HandedOver:
    """An agent's worker that holds an operation's first lease, and the stage it is given."""

    worker: str
    stage: str


def new(
    cloud: Cloud,
    action: str,
    resource: Resource,
    project_id: str,
    plan: Plan = NOTHING_PLANNED,
    *,
    params: Params = NOTHING_ASKED,
    quota: Step | None = None,
    handed_over: HandedOver | None = None,
    marks: Mapping[str, str] | None = None,
) -> NewOperation:
    """Return an operation to be inserted; see ``NewOperation``."""
    options, (resource_type, resource_id) = cloud.conf.conductor, resource
    return NewOperation(
        resource_id=resource_id,
        project_id=project_id,
        action=action,
        owner=cloud.name if handed_over is None else leases.of_worker(handed_over.worker),
        lease_seconds=options.lease_seconds,
        timeout_seconds=options[_TIMEOUTS.get(action, "action_timeout_seconds")],
        params=params,
        plan=plan,
        resource_type=resource_type,
        quota=quota,
        stage=None if handed_over is None else handed_over.stage,
        marks=marks or {},
    )


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    action: str,
    plan: Plan = NOTHING_PLANNED,
    *,
    params: Params = NOTHING_ASKED,
    quota: Step | None = None,
    handed_over: HandedOver | None = None,
) -> Operation:
    """Write an operation on an existing server, whose state does not change."""
    its, rest = (ResourceType.SERVER, server.uuid), (server.project_id, plan)
    item = new(cloud, action, its, *rest, params=params, quota=quota, handed_over=handed_over)
    return ledger.insert(connection, ctxt, [item])[0]


@dataclass(frozen=True)
class Taken:
    """An operation that begins on a server; see ``take``."""

    ctxt: RequestContext
    server: Server
    action: str
    plan: Plan
    params: Params = NOTHING_ASKED
    quota: Step | None = None
    handed_over: HandedOver | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


def take_all(
    connection: Transaction, cloud: Cloud, taken: Sequence[Taken]
) -> list[tuple[Operation, Server]]:
    """Do as ``take`` for several servers, all of the same columns: four statements."""
    items = [
        new(
            *(cloud, one.action, (ResourceType.SERVER, one.server.uuid)),
            *(one.server.project_id, one.plan),
            params=one.params,
            quota=one.quota,
            handed_over=one.handed_over,
        )
        for one in taken
    ]
    if not items:
        return []
    begun = ledger.insert_all(
        connection, [(one.ctxt, item) for one, item in zip(taken, items, strict=True)]
    )
    moves = [
        Move(
            one.server,
            operation.id,
            VmState(one.server.vm_state),
            next(iter(ACTIONS[one.action].walk), None),
            one.columns,
            takes_over=True,
        )
        for one, operation in zip(taken, begun, strict=True)
    ]
    return list(zip(begun, transitions.move_all(connection, moves), strict=True))


def take(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    action: str,
    plan: Plan,
    *,
    params: Params = NOTHING_ASKED,
    quota: Step | None = None,
    handed_over: HandedOver | None = None,
    **columns: Any,
) -> tuple[Operation, Server]:
    """Write an operation, and move its server to the first task_state of the action's walk.

    ``columns`` of the server change with it. Return the operation, and the server as it is now.
    Raises StaleTransition.
    """
    taken = Taken(ctxt, server, action, plan, params, quota, handed_over, columns)
    return take_all(connection, cloud, [taken])[0]


def begin_now(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, item: NewOperation
) -> Operation:
    """Write an operation for ``cloud.start`` after the commit.

    The lease is given to the worker that carries its host; to this conductor while that worker is
    down.
    """
    host = item.plan.target.host
    worker = None if host is None else cloud.worker_of(connection, host)
    if host is None or worker is None:
        return ledger.insert(connection, ctxt, [item])[0]
    item = dataclasses.replace(item, owner=leases.of_worker(worker))
    operation = ledger.insert(connection, ctxt, [item])[0]
    return dataclasses.replace(operation, handed_to=(host, worker))


def begin_later(connection: Transaction, ctxt: RequestContext, item: NewOperation) -> Operation:
    """Write an operation without lease, due at once: any conductor takes it."""
    operation = ledger.insert(connection, ctxt, [item])[0]
    leases.postpone(connection, operation.id, 0)
    return operation

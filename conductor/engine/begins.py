"""How operations begin: with a lease that is this conductor's, and the time their action has."""

from __future__ import annotations

from common.context import RequestContext
from common.messages.reports import Step
from conductor.cloud import Cloud
from conductor.plans import NOTHING_ASKED, NOTHING_PLANNED, Params, Plan
from conductor.store import operations as ledger
from conductor.store.operations import NewOperation, Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction

#: the option of ``[conductor]`` that says how long an action may take, where it is one of its own
_TIMEOUTS = {"create": "build_timeout_seconds"}


def new(
    cloud: Cloud,
    action: str,
    server_uuid: str,
    project_id: str,
    *,
    params: Params = NOTHING_ASKED,
    plan: Plan = NOTHING_PLANNED,
    quota: Step | None = None,
) -> NewOperation:
    """An operation on a server, to be inserted; see ``NewOperation``."""
    options = cloud.conf.conductor
    return NewOperation(
        resource_id=server_uuid,
        project_id=project_id,
        action=action,
        owner=cloud.name,
        lease_seconds=options.lease_seconds,
        timeout_seconds=options[_TIMEOUTS.get(action, "action_timeout_seconds")],
        params=params,
        plan=plan,
        quota=quota,
    )


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    action: str,
    plan: Plan = NOTHING_PLANNED,
) -> Operation:
    """Write an operation on a server that the record has."""
    item = new(cloud, action, server.uuid, server.project_id, plan=plan)
    return ledger.insert(connection, ctxt, [item])[0]

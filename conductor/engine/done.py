"""Operations on servers that are closed when they are written: a record of what was done."""

from __future__ import annotations

from collections.abc import Mapping

from common import clock
from common.context import RequestContext
from common.messages.reports import Step
from common.resources.states import InternalAction, OperationState
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.store.ledger import operations as ledger
from conductor.store.records import Server
from conductor.store.transactions import Transaction

_EVENTS: Mapping[InternalAction, str] = {
    InternalAction.LOCK: "api_lock",
    InternalAction.UNLOCK: "api_unlock",
    InternalAction.EXTEND_VOLUME: "compute_extend_volume",
}


def record(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    action: InternalAction,
) -> None:
    """Write an operation that has ended well, with its one event."""
    operation = start.begin(connection, cloud, ctxt, server, action)
    now = clock.utcnow()
    step = Step(_EVENTS[action], 0, now, now, "Success")
    ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
    ledger.close(connection, operation.id, OperationState.DONE)

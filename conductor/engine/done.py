"""Operations on servers that are closed when they are written: a record of what was done."""

from __future__ import annotations

from common import clock
from common.context import RequestContext
from common.messages.reports import Step
from common.resources.states import InternalAction, OperationState
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.store.ledger import operations as ledger
from conductor.store.records import Server
from conductor.store.transactions import Transaction


def record(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    action: InternalAction,
    event: str,
) -> None:
    """Write an operation that has ended well, with its one event of this name."""
    operation = start.begin(connection, cloud, ctxt, server, action)
    now = clock.utcnow()
    step = Step(event, 0, now, now, "Success")
    ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
    ledger.close(connection, operation.id, OperationState.DONE)

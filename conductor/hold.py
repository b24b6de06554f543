"""A hold: what is under way for a server is not tried again until the hold is released.

What an agent works on goes on, and a user's new request begins; only what failed, or was
abandoned, stays where it is.
"""

from __future__ import annotations

import sqlalchemy as sa

from common import clock
from common.context import RequestContext
from common.log import logger
from common.messages.reports import Step
from common.states import OPEN_STATES, Happening, OperationState
from conductor.accept import scope
from conductor.cloud import Cloud
from conductor.store import operations as ledger
from conductor.store import servers
from conductor.store.operations import NewOperation
from conductor.store.servers import Server
from db.schema import operations
from db.schema import servers as table

LOG = logger(__name__)


def hold(cloud: Cloud, ctxt: RequestContext, server_uuid: str, *, held: bool) -> None:
    """See ``ConductorClient.hold_server``."""

    def work(connection: sa.Connection) -> bool:
        server = servers.alive(connection, server_uuid, scope(ctxt))
        now_held = connection.execute(
            sa.select(table.c.held).where(table.c.id == server.id)
        ).scalar_one()
        if now_held == held:
            return False
        servers.change(connection, server, {"held": held})
        waiting = ledger.open_of(connection, server.uuid)
        if not held and waiting:
            _due_now(connection, waiting, cloud.conf.conductor.action_timeout_seconds)
        _tell(connection, cloud, ctxt, server, waiting, held=held)
        return True

    if cloud.store.run(work):
        LOG.info("Server %s is %s.", server_uuid, "held" if held else "no longer held")
        if not held:
            cloud.wake()


def _due_now(connection: sa.Connection, ids: list[int], seconds: float) -> None:
    """What was held goes on at once, and has time for it; what an agent works on is its own."""
    mine = operations.c.id.in_(ids) & operations.c.state.in_(OPEN_STATES)
    late = operations.c.deadline < clock.after(seconds)
    connection.execute(operations.update().where(mine, late).values(deadline=clock.after(seconds)))
    connection.execute(operations.update().where(mine).values(not_before=None))


def _tell(
    connection: sa.Connection,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    waiting: list[int],
    *,
    held: bool,
) -> None:
    options = cloud.conf.conductor
    new = NewOperation(
        server_uuid=server.uuid,
        project_id=server.project_id,
        action=Happening.HOLD if held else Happening.RELEASE_HOLD,
        owner=cloud.name,
        lease_seconds=options.lease_seconds,
        timeout_seconds=options.action_timeout_seconds,
    )
    operation = ledger.insert(connection, ctxt, [new])[0]
    now = clock.utcnow()
    step = Step("conductor_hold", 0, now, now, "Success", detail={"operations": waiting})
    ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
    ledger.close(connection, operation.id, OperationState.DONE)

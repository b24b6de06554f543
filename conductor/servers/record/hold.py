"""Hold: a server's operations are not retried until the hold is released.

An agent's running work continues, and a user's new request begins; only failed or abandoned
operations wait. Retry is the opposite: waiting operations are tried at once.
"""

from __future__ import annotations

from common import clock
from common.context import RequestContext
from common.errors import Conflict
from common.log import logger
from common.messages.reports import Step
from common.resources.states import InternalAction, OperationState, VmState
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import scope
from conductor.store.ledger import due_operations
from conductor.store.ledger import operations as ledger
from conductor.store.records import Server
from conductor.store.servers import servers
from conductor.store.servers.vm_states import is_idle
from conductor.store.transactions import Transaction

LOG = logger(__name__)


def hold(cloud: Cloud, ctxt: RequestContext, server_uuid: str, *, held: bool) -> None:
    """See ``ConductorRpc.hold_server``."""

    def work(connection: Transaction) -> bool:
        server = servers.alive(connection, server_uuid, scope(ctxt))
        if servers.is_held(connection, server) == held:
            return False
        servers.change(connection, server, {"held": held})
        ids = ledger.open_of(connection, server.uuid)
        if not held and ids:
            due_operations.due_now(connection, ids, cloud.conf.conductor.action_timeout_seconds)
        action = InternalAction.HOLD if held else InternalAction.RELEASE_HOLD
        _record(connection, cloud, ctxt, server, ids, action)
        return True

    if cloud.store.run(work):
        LOG.info("Server %s is %s.", server_uuid, "held" if held else "no longer held")
        if not held:
            cloud.wake()


def retry(cloud: Cloud, ctxt: RequestContext, server_uuid: str) -> Server | None:
    """See ``ConductorRpc.retry_server``; return a server in ERROR, to be looked at."""

    def work(connection: Transaction) -> Server | None:
        server = servers.alive(connection, server_uuid, scope(ctxt))
        if servers.is_held(connection, server):
            raise Conflict(f"Server {server_uuid} is held: release its hold instead.")
        ids = due_operations.of_server(connection, server.uuid)
        lost = server.vm_state == VmState.ERROR and server.vmid is not None
        if not ids and not (lost and is_idle(connection, server.uuid)):
            raise Conflict(f"Nothing waits to be tried again for server {server_uuid}.")
        due_operations.due_now(connection, ids, cloud.conf.conductor.action_timeout_seconds)
        _record(connection, cloud, ctxt, server, ids, InternalAction.RETRY)
        return None if ids else server

    server = cloud.store.run(work)
    LOG.info("Server %s is retried at once.", server_uuid)
    cloud.wake()
    return server


def _record(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    ids: list[int],
    action: InternalAction,
) -> None:
    operation = start.begin(connection, cloud, ctxt, server, action)
    now = clock.utcnow()
    name = "conductor_retry" if action == InternalAction.RETRY else "conductor_hold"
    step = Step(name, 0, now, now, "Success", detail={"operations": ids})
    ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
    ledger.close(connection, operation.id, OperationState.DONE)

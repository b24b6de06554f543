"""Moves the allocation of a server that was followed to another host, however long it takes."""

from __future__ import annotations

from common import clock
from common.errors import GenerationConflict, Unavailable
from common.log import logger
from common.messages.reports import Step
from common.resources.states import OperationState
from conductor.cloud import Cloud, backoff
from conductor.engine import close
from conductor.engine.stages import Task
from conductor.store.hosts import registry
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.sync import allocations

LOG = logger(__name__)


class MoveAllocation:
    """The end of ``InternalAction.FOLLOW``: it blocks no other action on the server."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def move(self, task: Task) -> None:
        """Move the allocation to the record's host. Raises Unavailable to be repeated later."""
        operation, started = task.operation, clock.utcnow()
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
            facts = None if server.host is None else registry.host(connection, server.host)[0]
        if server.deleted_at is not None or facts is None:
            close.overtaken(self._cloud, task)
            return
        try:
            room = allocations.follow(self._cloud.placement, server, facts.uuid)
        except GenerationConflict as error:
            raise Unavailable(error.message) from error
        with self._cloud.store.read() as connection:
            gone = servers.get(connection, server.uuid).deleted_at is not None
        if gone:
            # The server was deleted and its allocation released, perhaps before ours was made.
            self._cloud.placement.release(server.uuid)
        result = "Success" if room else "Error"
        detail = {"host": facts.host, "room": room}
        step = Step("conductor_move_allocation", 1, started, clock.utcnow(), result, detail=detail)
        self._cloud.store.run(lambda c: _settled(c, operation, step, room or gone))
        if not room:
            LOG.warning("Placement has no room for server %s on %s.", server.uuid, facts.host)


def _settled(connection: Transaction, operation: Operation, step: Step, done: bool) -> None:
    ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
    if done:
        ledger.close(connection, operation.id, OperationState.DONE)
        return
    # The VM is on the host, but placement has no room for it: retry until there is room.
    following = leases.next_attempt(connection, operation)
    leases.postpone(connection, following.id, backoff(operation.attempt))

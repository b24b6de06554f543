"""Aborts live migrations, and has them end at once, where the agents' token may."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Invalid, NotFound, ServerStateConflict, Unavailable
from common.log import logger
from common.messages.questions import Agent, SteerMigration
from common.resources import locks
from common.resources.migrations import MigrationStatus
from common.resources.states import TaskState
from conductor.cloud import Cloud, silence
from conductor.engine.access import scope
from conductor.store import call_answers, change_events
from conductor.store.ledger import operations as ledger
from conductor.store.records import Server
from conductor.store.servers import migrations, servers
from conductor.store.servers.migrations import Live
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: what an operation says of itself from then on
ABORTED = "The live migration was aborted."
#: in 409s and 400s, as Nova has them
_LABELS = {True: "abort live migration", False: "force_complete"}
_METHODS = {True: "abort live migration", False: "force complete"}
_PARTS = {True: "live_migration_abort", False: "live_migration_force_complete"}


def steer(cloud: Cloud, ctxt: RequestContext, uuid: str, number: int, *, abort: bool) -> None:
    """See ``ConductorRpc.steer_migration``."""

    def mark(connection: Transaction) -> tuple[Server, Live, str | None]:
        server, live = _found(connection, ctxt, uuid, number, abort=abort)
        worker = cloud.worker_of(connection, str(server.host))
        if abort:
            # Before the agent is called, so that the handler of the outcome knows the reason.
            ledger.save(connection, live.operation_id, message=ABORTED)
        _note(connection, server, "start")
        if live.status != MigrationStatus.RUNNING:
            _note(connection, server, "end")
        else:
            call_answers.go_on(connection)
        return server, live, worker

    def _note(connection: Transaction, server: Server, phase: str) -> None:
        change_events.note(connection, [change_events.Asked(server, _PARTS[abort], phase, ctxt)])

    server, live, worker = cloud.store.run(mark)
    if live.status != MigrationStatus.RUNNING:
        # It has not begun: what carries it out looks before it sends it.
        return
    why = None
    if worker is None:
        why = silence(server.host)
    else:
        order = SteerMigration(server.vmid or 0, str(server.node), server.uuid, abort)
        why = cloud.compute.ask(ctxt, Agent(worker, str(server.cluster)), order)
    if why is None:
        LOG.info("Live migration %d: %s.", number, _METHODS[abort])
        try:
            cloud.store.run(lambda c: _note(c, server, "end"))
        except Unavailable as error:
            LOG.warning("The notification %s.end is not written: %s", _PARTS[abort], error.message)
        return
    if abort:
        cloud.store.run(lambda c: ledger.save(c, live.operation_id, message=None))
    raise Invalid(f"Cannot {_METHODS[abort]} migration {number}: {why}")


def _found(
    connection: Transaction, ctxt: RequestContext, uuid: str, number: int, *, abort: bool
) -> tuple[Server, Live]:
    """Return the server and its migration. Raises what Nova answers for others."""
    server = servers.alive(connection, uuid, scope(ctxt))
    locks.check(server.uuid, server.locked_by, is_admin=bool(ctxt.is_admin))
    if server.task_state != TaskState.MIGRATING:
        raise ServerStateConflict(
            action=_LABELS[abort],
            server_uuid=server.uuid,
            attribute="task_state",
            state=str(server.task_state),
        )
    live = migrations.live(connection, server.uuid, number)
    if live is None:
        raise NotFound(f"Migration {number} not found for instance {server.uuid}.")
    may = {MigrationStatus.RUNNING} | (
        {MigrationStatus.QUEUED, MigrationStatus.PREPARING} if abort else set()
    )
    if live.status not in may:
        raise Invalid(
            f"Migration {number} state of instance {server.uuid} is {live.status}. Cannot "
            f"{_METHODS[abort]} while the migration is in this state."
        )
    return server, live

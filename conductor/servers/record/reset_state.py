"""Reset of a server's state by an administrator: the record changes, and no VM is touched.

No operation is deleted from the ledger. A build or a change of power is superseded, as by a
delete: its outcome no longer counts, and what it reserved remains the server's. An image that is
being made is removed. A delete continues, with its task_state, and applies its outcome. While any
other operation is open, such as a resize or a rebuild, the reset is refused: only that operation
knows what the VM has, until it ends.
"""

from __future__ import annotations

from common import clock
from common.context import RequestContext
from common.errors import ServerStateConflict, Unavailable
from common.log import logger
from common.messages.reports import Step
from common.resources.states import InternalAction, OperationState, TaskState, VmState
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import scope
from conductor.store.images import server_images
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import transitions
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations, server_groups, servers
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: actions that another operation may take the server from, whatever stage they are at
_GIVES_WAY = frozenset(
    {"create", "stop", "start", "reboot", "reboot-hard", "changePassword", "soft-delete"}
    | {"restore", "createImage", "createBackup"}
)
#: actions past their point of no return, which a reset does not supersede
_GOES_ON = frozenset({"delete"})


def reset_state(cloud: Cloud, ctxt: RequestContext, server_uuid: str, state: VmState) -> None:
    """See ``ConductorRpc.reset_server_state``."""

    def work(connection: Transaction) -> tuple[str, ...]:
        server = servers.alive(connection, server_uuid, scope(ctxt))
        under_way = _under_way(connection, server)
        continues = under_way is not None and _continues(server, under_way)
        reset = start.begin(connection, cloud, ctxt, server, InternalAction.RESET_STATE)
        kept = under_way.id if continues and under_way is not None else None
        transitions.move(
            connection,
            server,
            operation_id=kept or reset.id,
            vm_state=state,
            task_state=_task_state(server) if continues else None,
            takes_over=True,
        )
        if server.vm_state in {VmState.SHELVED, VmState.SHELVED_OFFLOADED}:
            server_images.forget_parked(connection, server.uuid)
        holders: tuple[str, ...] = ()
        if server.vm_state in {VmState.RESIZED, VmState.ERROR}:
            # One in ERROR may have been resized before.
            holders = migrations.end_open(connection, server.uuid)
            for holder in holders:
                server_groups.move_place(connection, server, holder)
        _record(connection, reset, server, under_way)
        return holders

    _release(cloud, server_uuid, cloud.store.run(work))
    LOG.warning("Server %s was reset to %s by an administrator.", server_uuid, state)


def _release(cloud: Cloud, server_uuid: str, holders: tuple[str, ...]) -> None:
    """Give back what migrations held that were confirmed by this; else the audit does."""
    try:
        for holder in holders:
            cloud.placement.release(holder)
    except Unavailable as error:
        LOG.warning(
            "What migrations of server %s hold in placement is left to the audit: %s",
            server_uuid,
            error.message,
        )


def _under_way(connection: Transaction, server: Server) -> Operation | None:
    """Return the operation that has the server, where it is not at its end."""
    last = ledger.get(connection, server.operation_id or 0)
    ended = last is None or last.state in {OperationState.DONE, OperationState.FAILED}
    return None if ended else last


def _continues(server: Server, under_way: Operation) -> bool:
    """Return whether the open operation continues with the server after the reset.

    Raises ServerStateConflict if the server can't be reset while it is open.
    """
    if under_way.action in _GOES_ON:
        return True
    if under_way.action in _GIVES_WAY:
        return False
    raise ServerStateConflict(
        action="os-resetState",
        server_uuid=server.uuid,
        attribute="task_state",
        state=server.task_state or under_way.action,
    )


def _task_state(server: Server) -> TaskState | None:
    return None if server.task_state is None else TaskState(server.task_state)


def _record(
    connection: Transaction, reset: Operation, server: Server, under_way: Operation | None
) -> None:
    """Keep what it was, and what was under way; the operation ends."""
    detail = {
        "was": server.vm_state,
        "task_was": server.task_state,
        "under_way": under_way.action if under_way is not None else None,
        "has_vm": server.vmid is not None,
    }
    now = clock.utcnow()
    step = Step("conductor_reset_state", 0, now, now, "Success", detail=detail)
    ledger.upsert_events(connection, [ledger.conductor_event(reset, step)])
    ledger.close(connection, reset.id, OperationState.DONE)

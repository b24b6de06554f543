"""Whether a request may act on a server, or any other resource: by its project, by its state."""

from __future__ import annotations

from common.context import RequestContext
from common.resources import action_preconditions, locks
from conductor.store.records import Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction


def scope(ctxt: RequestContext) -> str | None:
    """Return the project whose servers a request may touch; None: any, for an administrator.

    The API's policy decides who is one. A token without a project has no servers.
    """
    return None if ctxt.is_admin else ctxt.project_id or ""


def free(
    connection: Transaction, ctxt: RequestContext, uuid: str, action: str, *, lock: bool = True
) -> Server:
    """Return a server on which an action may begin, its row locked.

    Raises ServerNotFound, ServerLocked, ServerStateConflict.
    """
    server = servers.alive(connection, uuid, scope(ctxt), lock=lock)
    require_free(ctxt, server, action)
    return server


def require_free(ctxt: RequestContext, server: Server, action: str) -> None:
    """Raise ServerLocked or ServerStateConflict if an action may not begin on a server."""
    locks.check(server.uuid, server.locked_by, is_admin=bool(ctxt.is_admin))
    check_state(server, action)


def check_state(server: Server, action: str) -> None:
    """Raise ServerStateConflict, in Nova's words, if the action may not start now."""
    launched = server.launched_at is not None
    action_preconditions.check(
        server.uuid, server.vm_state, server.task_state, action, launched=launched
    )

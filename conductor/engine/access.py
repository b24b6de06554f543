"""Whether a request may act on a server, or any other resource: by its project, by its state."""

from __future__ import annotations

from common.context import RequestContext
from common.resources import action_preconditions
from conductor.store.records import Server


def scope(ctxt: RequestContext) -> str | None:
    """Return the project whose servers a request may touch; None: any, for an administrator.

    The API's policy decides who is one. A token without a project has no servers.
    """
    return None if ctxt.is_admin else ctxt.project_id or ""


def check_state(server: Server, action: str) -> None:
    """Raise ServerStateConflict, in Nova's words, if the action may not start now."""
    launched = server.launched_at is not None
    action_preconditions.check(
        server.uuid, server.vm_state, server.task_state, action, launched=launched
    )

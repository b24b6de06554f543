"""Whether an action may begin on a server: asked before what the action itself checks.

The conductor asks again when it begins.
"""

from __future__ import annotations

from api.compute.call import Call
from common.resources import action_preconditions, locks


def require(call: Call, action: str) -> None:
    """Raise ServerLocked or, in Nova's words, ServerStateConflict if it may not begin now."""
    server = call.server
    locks.check(server.uuid, server.locked_by, is_admin=call.is_admin)
    launched = server.launched_at is not None
    action_preconditions.check(
        server.uuid, server.vm_state, server.task_state, action, launched=launched
    )

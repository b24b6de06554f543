"""Whether an action may begin on a server: asked before what the action itself checks.

The conductor asks again when it begins.
"""

from __future__ import annotations

from api.compute.call import Call
from common import locks, startable


def require(call: Call, action: str) -> None:
    """Raise ServerLocked or, in Nova's words, ServerStateConflict if it may not begin now."""
    server = call.server
    locks.check(server.uuid, server.locked_by, is_admin=call.is_admin)
    launched = server.launched_at is not None
    startable.check(server.uuid, server.vm_state, server.task_state, action, launched=launched)

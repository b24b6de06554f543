"""Whether an action may begin on a server: the API asks first, the conductor when it begins."""

from __future__ import annotations

from common.errors import ServerStateConflict
from common.resources import states


def check(
    uuid: str, vm_state: str, task_state: str | None, action: str, *, launched: bool
) -> None:
    """Raise ServerStateConflict, in Nova's words, if the action may not begin now."""
    refused = states.refusal(action, vm_state, task_state, launched)
    if refused is None:
        return
    raise conflict(uuid, *refused, action)


def conflict(uuid: str, attribute: str, state: str, action: str) -> ServerStateConflict:
    """Return Nova's error for an action that may not begin while an attribute is this."""
    label = states.ACTIONS[action].label
    return ServerStateConflict(
        f"Cannot '{label}' instance {uuid} while it is in {attribute} {state}",
        attribute=attribute,
        state=state,
        action=label,
        server_uuid=uuid,
    )

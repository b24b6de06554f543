"""`/servers/{id}/tags`: tags of a server."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import server_parts as schemas
from api.compute.schemas.types import MAX_TAGS, TAG
from api.words import BODY
from common.errors import Invalid, NotFound, ServerStateConflict
from common.resources.states import VmState
from web.guard import Reply
from web.schemas import Validator

_SINCE = "2.26"
_SETTLED = (VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED)
_is_tag = Validator(TAG, BODY)


class ServerTags:
    """The tags of a server; they can change while it is active, paused, suspended or stopped."""

    @operation("os-server-tags:index", since=_SINCE, query=schemas.ANY_QUERY, on=the_server)
    def index(self, call: Call) -> Any:
        """List tags."""
        return {"tags": list(call.server.tags)}

    @operation(
        "os-server-tags:show",
        since=_SINCE,
        status=204,
        query=schemas.ANY_QUERY,
        on=the_server,
    )
    def show(self, call: Call, tag: str) -> None:
        """Check for a tag: 204, or 404."""
        if tag not in call.server.tags:
            raise NotFound(f"Server {call.server.uuid} has no tag '{tag}'")

    @operation("os-server-tags:update", since=_SINCE, status=201, on=the_server)
    def update(self, call: Call, tag: str) -> Any:
        """Add a tag: 201, or 204 if it exists already."""
        _settled(call, "update tag")
        try:
            _is_tag(tag)
        except Invalid as error:
            raise Invalid(
                f"Tag '{tag}' is invalid. It must be a non empty string without characters "
                f"'/' and ','. Validation error message: {error.message}"
            ) from error
        tags = list(call.server.tags)
        if len(tags) >= MAX_TAGS:
            raise Invalid(f"The number of tags exceeded the per-server limit {MAX_TAGS}")
        if tag in tags:
            return Reply(status=204)
        _set(call, [*tags, tag])
        location = call.links.location("servers", call.server.uuid, "tags", tag)
        return Reply(headers={"Location": location})

    @operation("os-server-tags:update_all", since=_SINCE, body=schemas.SET_TAGS, on=the_server)
    def update_all(self, call: Call) -> Any:
        """Replace all tags."""
        _settled(call, "update tags")
        tags = list(dict.fromkeys(call.body["tags"]))
        _set(call, tags)
        return {"tags": tags}

    @operation("os-server-tags:delete", since=_SINCE, status=204, on=the_server)
    def delete(self, call: Call, tag: str) -> None:
        """Delete a tag."""
        _settled(call, "delete tag")
        if tag not in call.server.tags:
            raise NotFound(f"Instance {call.server.uuid} has no tag '{tag}'")
        _set(call, [other for other in call.server.tags if other != tag])

    @operation("os-server-tags:delete_all", since=_SINCE, status=204, on=the_server)
    def delete_all(self, call: Call) -> None:
        """Delete all tags."""
        _settled(call, "delete tags")
        _set(call, [])


def _settled(call: Call, action: str) -> None:
    if call.server.vm_state not in _SETTLED:
        raise ServerStateConflict(
            action=action,
            server_uuid=call.server.uuid,
            attribute="vm_state",
            state=call.server.vm_state,
        )


def _set(call: Call, tags: list[str]) -> None:
    call.conductor.set_server_tags(call.ctxt, call.server.uuid, tuple(tags))

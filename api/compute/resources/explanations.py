"""`/explanations/{subject}`: histories from the ledger.

This resource is micronova's own. Owners see what happened and what it means for them;
administrators also see hosts, reasons, numbers, tasks and logs.
"""

from __future__ import annotations

import uuid
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.views import explanations as views
from common import ids, moving
from common.errors import NotFound
from common.states import ResourceType
from db.reads import hosts, images, networks, operations, refusals
from db.reads.operations import Story


class Explanations:
    """Histories by request ID, global request ID, or the UUID of a server, a port or an image.

    Deleted servers and images have theirs too, and so have refused requests.
    """

    @operation(policies.EXPLAIN)
    def show(self, call: Call, subject: str) -> Any:
        """Explain a request, server, port or image; only administrators see other projects'."""
        named = str(uuid.UUID(subject)) if ids.is_uuid(subject) else subject
        project = None if call.is_admin else call.ctxt.project_id or ""
        operator = call.allows(policies.EXPLAIN_ALL)
        found = call.read(operations.stories, named, project, limit=call.max_limit)
        refused = call.read(refusals.named, named, project, limit=call.max_limit)
        about: dict[str, Any] = {}
        if operator and not named.startswith("req-"):
            about = _move(call, named)
        if not found and not refused and ids.is_uuid(named):
            about, found = _other(call, named, project, operator=operator)
        if not found and not refused and not about:
            raise NotFound(
                f"Nothing is known under {subject}. What is kept is what was done to servers and "
                "images, and the newest requests that were refused; ports are explained by their "
                "servers."
            )
        return {
            "explanation": {
                "subject": named,
                **about,
                "operations": [
                    *(views.refusal(one, operator=operator) for one in refused),
                    *(views.story(story, operator=operator) for story in found),
                ],
            }
        }


def _other(
    call: Call, named: str, project: str | None, *, operator: bool
) -> tuple[dict[str, Any], list[Story]]:
    """Return what a port or an image is now, and what was done to it, or to the port's server."""
    ports = call.read(networks.list_ports, {"id": [named]})
    if ports and project in (None, ports[0].project_id):
        port = ports[0]
        server = port.server_uuid
        limit = call.max_limit
        found = call.read(operations.stories, server, project, limit=limit) if server else []
        return {"port": views.port(port, operator=operator)}, found
    image = call.read(images.get, named, project)
    found = call.read(
        operations.stories, named, project, limit=call.max_limit, kind=ResourceType.IMAGE
    )
    return ({"image": views.image(image)} if image is not None else {}), found


def _move(call: Call, server_uuid: str) -> dict[str, Any]:
    """Return how a server could be moved now, or why it can't; nothing for one that is gone."""
    now = call.read(hosts.situation, server_uuid)
    if now is None:
        return {}
    return {"move": {"way": moving.way(now), "obstacle": moving.obstacle(now)}}

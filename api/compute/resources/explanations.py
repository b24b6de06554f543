"""`/explanations/{subject}`: the history of a request or a server, from the ledger.

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
from db.reads import hosts, operations, refusals


class Explanations:
    """Histories by request ID, global request ID or server UUID; also of deleted servers and of
    refused requests.
    """

    @operation(policies.EXPLAIN)
    def show(self, call: Call, subject: str) -> Any:
        """Explain a request or a server; only administrators see other projects'."""
        named = str(uuid.UUID(subject)) if ids.is_uuid(subject) else subject
        project = None if call.is_admin else call.ctxt.project_id or ""
        found = call.read(operations.stories, named, project, limit=call.max_limit)
        refused = call.read(refusals.named, named, project, limit=call.max_limit)
        if not found and not refused:
            raise NotFound(
                f"Nothing is known under {subject}. What is kept is what was done to servers, and "
                "the newest requests that were refused."
            )
        operator = call.allows(policies.EXPLAIN_ALL)
        about_server = operator and not named.startswith("req-")
        return {
            "explanation": {
                "subject": named,
                **(_move(call, named) if about_server else {}),
                "operations": [
                    *(views.refusal(one, operator=operator) for one in refused),
                    *(views.story(story, operator=operator) for story in found),
                ],
            }
        }


def _move(call: Call, server_uuid: str) -> dict[str, Any]:
    """Return how a server could be moved now, or why it can't; nothing for one that is gone."""
    now = call.read(hosts.situation, server_uuid)
    if now is None:
        return {}
    return {"move": {"way": moving.way(now), "obstacle": moving.obstacle(now)}}

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
from common import ids
from common.errors import NotFound
from db.reads import operations, refusals


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
        return {
            "explanation": {
                "subject": named,
                "operations": [
                    *(views.refusal(one, operator=operator) for one in refused),
                    *(views.story(story, operator=operator) for story in found),
                ],
            }
        }

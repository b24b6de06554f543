"""`/operations`: who did what, in all projects, for administrators; micronova's own."""

from __future__ import annotations

import dataclasses
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import activity as schemas
from common import clock
from db.reads.ledger import activity

PATH = "operations"


class Operations:
    """The operations of the ledger."""

    @operation(policies.OPERATIONS, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List operations of all projects, newest first; with `order=oldest` oldest first.

        Filters: `project_id`, `user_id`, `state` (`open`: those that haven't ended).
        """
        limit, marker = call.query.page(call.max_limit)
        wanted = activity.Wanted(
            call.query.last("project_id"),
            call.query.last("user_id"),
            call.query.last("state"),
            oldest_first=call.query.last("order") == schemas.OLDEST,
        )
        found = call.read(activity.page, wanted, limit, schemas.number(marker))
        answer: dict[str, Any] = {"operations": [_view(one) for one in found]}
        if found and len(found) == limit:
            after = str(found[-1].id)
            answer["operations_links"] = call.links.after(PATH, call.query, after)
        return answer


def _view(entry: activity.Entry) -> dict[str, Any]:
    view = dataclasses.asdict(entry)
    times = ("not_before", "started_at", "updated_at", "finished_at")
    return view | {name: clock.iso(view[name]) for name in times}

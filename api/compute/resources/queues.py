"""`/queues`: what runs and waits on each host, for administrators; micronova's own."""

from __future__ import annotations

import dataclasses
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import queues as schemas
from common import clock
from db.reads import queues


class Queues:
    """The queues of hosts, as their agents last reported them."""

    @operation(policies.QUEUES, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List hosts with their queues; filters: `host`, `name` (a part of the host's)."""
        limit, marker = call.query.page(call.max_limit)
        found = call.read(
            queues.list_queues,
            limit,
            marker=marker,
            host=call.query.last("host"),
            name_part=call.query.last("name"),
        )
        answer: dict[str, Any] = {"hosts": [_view(one) for one in found]}
        if found and len(found) == limit:
            answer["hosts_links"] = call.links.after("queues", call.query, found[-1].uuid)
        return answer


def _view(row: queues.HostQueues) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.uuid,
        "host": row.host,
        "worker": row.worker,
        "reported_seconds_ago": None,
        "queues": None,
    }
    if row.queues is None or row.reported_at is None:
        return view
    ago = (clock.utcnow() - row.reported_at).total_seconds()
    return view | {
        "reported_seconds_ago": max(0, int(ago)),
        "queues": [dataclasses.asdict(queue) for queue in row.queues],
    }

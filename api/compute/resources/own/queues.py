"""`/queues`: how each host is, what runs and waits there, for administrators; micronova's own."""

from __future__ import annotations

import dataclasses
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import queues as schemas
from api.compute.views.hosts import is_up, trouble
from common import clock
from db.reads.hosts import queues


class Queues:
    """The health and the queues of hosts, as their agents last reported them."""

    @operation(policies.QUEUES, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List hosts with their health and queues.

        Filters: `host`, `name` (a part of the host's), `unwell` (those that take no servers
        because of their health), `state` (up, down).
        """
        down_seconds = call.cloud.conf.api.service_down_seconds
        unwell, state = call.query.boolean("unwell"), call.query.last("state")
        since = clock.after(-down_seconds)
        limit, marker = call.query.page(call.max_limit)
        found = call.read(
            queues.list_queues,
            limit,
            marker=marker,
            host=call.query.last("host"),
            name_part=call.query.last("name"),
            unwell_since=since if unwell else None,
            up_since=since if state == schemas.UP else None,
            down_since=since if state == schemas.DOWN else None,
        )
        answer: dict[str, Any] = {"hosts": [_view(one, down_seconds) for one in found]}
        if found and len(found) == limit:
            answer["hosts_links"] = call.links.after("queues", call.query, found[-1].uuid)
        return answer


def _view(row: queues.HostQueues, down_seconds: float) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.uuid,
        "host": row.host,
        "worker": row.worker,
        "state": schemas.UP if is_up(row, down_seconds) else schemas.DOWN,
        "health": trouble(row, down_seconds),
        "web_url": row.web_url or None,
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

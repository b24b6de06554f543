"""`/waiting`: servers that wait for room on a host; micronova's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import waiting as schemas
from api.compute.views import waiting as views
from common import clock
from db.reads.ledger import waiting, waiting_moves, ways_to_room
from db.reads.ledger.waiting import Waiting


class WaitingServers:
    """The servers that wait, in the order of their arrival."""

    @operation(policies.WAITING, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List the project's servers that wait for room; administrators see all projects'.

        They see the moves of drains and the evacuations that do, too, on the first page.
        """
        limit, marker = call.query.page(call.max_limit)
        operator = call.allows(policies.EXPLAIN_ALL)
        found = call.read(
            waiting.list_waiting,
            call.reach,
            limit=limit,
            after_place=schemas.place(marker),
        )
        answer: dict[str, Any] = {"waiting": shown(call, found, operator=operator)}
        if operator and marker is None:
            moves = call.read(waiting_moves.read)
            answer["moves"] = [views.move(one) for one in moves]
        if found and len(found) == limit:
            answer["waiting_links"] = call.links.after("waiting", call.query, str(found[-1].place))
        return answer


def shown(call: Call, found: Sequence[Waiting], *, operator: bool) -> list[dict[str, Any]]:
    """Return builds that wait as JSON, with what would make room for each.

    The ends of servers are looked at for one project only.
    """
    up_since = clock.after(-call.cloud.conf.api.service_down_seconds)
    one_project = len({one.project_id for one in found}) == 1
    ways = call.read(ways_to_room.read, found, up_since, ends=one_project)
    return [
        views.waiting(one, ways.get(one.operation_id, ways_to_room.Ways()), operator=operator)
        for one in found
    ]


class HostsForWaiting:
    """How many more hosts would take all servers that wait."""

    @operation(policies.CAPACITY, query=schemas.HOSTS)
    def show(self, call: Call) -> Any:
        """Show for each kind of host how many more of it would take all that wait for room."""
        wanted = call.read(waiting.wanted)
        found = call.read(waiting.more_hosts_for, wanted)
        return {
            "waiting": len(wanted),
            "kinds": [views.more_hosts(one) for one in found],
        }

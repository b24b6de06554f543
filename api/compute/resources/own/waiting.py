"""`/waiting`: servers that wait for room on a host; micronova's own."""

from __future__ import annotations

from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import waiting as schemas
from api.compute.views import waiting as views
from common import more_hosts
from db.reads.hosts import hosts
from db.reads.ledger import waiting


class WaitingServers:
    """The servers that wait, in the order of their arrival."""

    @operation(policies.WAITING, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List the project's servers that wait for room; administrators see all projects'."""
        limit, marker = call.query.page(call.max_limit)
        operator = call.allows(policies.EXPLAIN_ALL)
        found = call.read(
            waiting.list_waiting,
            call.reach,
            limit=limit,
            after_place=schemas.place(marker),
        )
        answer: dict[str, Any] = {
            "waiting": [views.waiting(one, operator=operator) for one in found]
        }
        if found and len(found) == limit:
            answer["waiting_links"] = call.links.after("waiting", call.query, str(found[-1].place))
        return answer


class HostsForWaiting:
    """How many more hosts would take all servers that wait."""

    @operation(policies.CAPACITY, query=schemas.HOSTS)
    def show(self, call: Call) -> Any:
        """Show for each kind of host how many more of it would take all that wait for room."""
        wanted = call.read(waiting.wanted)
        found = [more_hosts.more(kind, wanted) for kind in call.read(hosts.kinds)]
        return {
            "waiting": len(wanted),
            "kinds": [views.more_hosts(one) for one in found],
        }

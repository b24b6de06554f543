"""`/schedule/fit`: whether servers would find room now, for those who may create them.

Nothing is changed. The answer names no host, and gives no numbers of hosts.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.servers.create import create_request
from api.compute.schemas import servers as server_schemas
from common.errors import Invalid, NotFound
from common.messages.scheduling import ROOM_FILTERS
from db.reads.servers import server_groups

#: servers that are asked about at the most: more would take the scheduler's time
MAX_SERVERS = 100


class Fits:
    """Whether a create would find hosts."""

    @operation(policies.FIT, body=server_schemas.CREATE, errors={NotFound: Invalid})
    def ask(self, call: Call) -> Any:
        """Say whether all servers of a `POST /servers` would have a host, and what refuses."""
        asked = create_request(call)
        group = asked.server_group
        if group and call.read(server_groups.find, group, call.reach) is None:
            raise NotFound(f"Instance group {group} could not be found.")
        count = min(max(asked.min_count, asked.max_count), MAX_SERVERS)
        asked = dataclasses.replace(asked, min_count=count, max_count=count)
        decisions = call.conductor.preview_servers(call.ctxt, asked, ())
        refused = next((one for one in decisions if one.host is None), None)
        filters = sorted(refused.counts) if refused else []
        lacks_room = bool(filters) and set(filters) <= ROOM_FILTERS
        return {
            "fit": {
                "fits": refused is None,
                "servers": count,
                "lacks_room": lacks_room,
                "refused_by": filters,
            }
        }

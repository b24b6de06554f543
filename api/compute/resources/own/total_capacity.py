"""`/capacity/total`: what the whole cloud has and what is free; micronova's own."""

from __future__ import annotations

import dataclasses
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import whatif as schemas
from common import clock
from db.reads.hosts import total_capacity


class TotalCapacity:
    """The sums over all hosts and storages."""

    @operation(policies.CAPACITY, query=schemas.TOTAL)
    def show(self, call: Call) -> Any:
        """Sum up processors and memory of hosts that take servers, and storages, each once."""
        since = clock.after(-call.cloud.conf.api.service_down_seconds)
        found = call.read(total_capacity.read, since)
        return {
            "total_capacity": {
                "hosts": found.hosts,
                "hosts_up": found.hosts_up,
                "hosts_taking_servers": found.hosts_taking_servers,
                "resources": [
                    {"resource_class": name, **dataclasses.asdict(one)}
                    for name, one in found.resources.items()
                ],
                "storages": found.storages,
                "storage_gib": dataclasses.asdict(found.storage_gib),
            }
        }

"""`/servers/{server_id}/metrics` and `/hosts/{host}/metrics`: measurements; micronova's own.

The answer has the metrics that the hypervisor records, each with its unit, in columns: the n-th
value is that of the interval that ends at the n-th time.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import measurements as schemas
from common import clock
from common.messages.measurements import OF_HOST, OF_SERVER, OF_STORAGE, Measured, Metric, Period


class ServerMetrics:
    """Measurements of a server."""

    @operation(policies.SERVER_METRICS, query=schemas.OF_SERVER, on=the_server)
    def show(self, call: Call) -> Any:
        """Show a server's use of processors, memory, network and disks in a `period`."""
        found = call.conductor.measure_server(call.ctxt, call.server.uuid, _period(call))
        return {"metrics": {"server_id": call.server.uuid} | _view(found, OF_SERVER)}


class HostMetrics:
    """Measurements of a compute host."""

    @operation(policies.HOST_METRICS, query=schemas.OF_HOST)
    def show(self, call: Call, host: str) -> Any:
        """Show the use of a compute host in a `period`, or with `storage` that of a storage."""
        storage = call.query.last("storage")
        table = OF_HOST if storage is None else OF_STORAGE
        found = call.conductor.measure_host(call.ctxt, host, _period(call), storage=storage)
        return {"metrics": {"host": host, "storage": storage} | _view(found, table)}


def _period(call: Call) -> Period:
    return Period(call.query.last("period") or Period.HOUR)


def _view(found: Measured, table: Mapping[str, Metric]) -> dict[str, Any]:
    return {
        "period": found.period.value,
        "resolution_seconds": found.resolution_seconds,
        "read_at": clock.iso(found.read_at),
        "times": [
            clock.iso(datetime.datetime.fromtimestamp(stamp, datetime.UTC))
            for stamp in found.times
        ],
        "series": [
            {
                "name": name,
                "unit": metric.unit.value,
                "description": metric.text,
                "values": found.values[name],
            }
            for name, metric in table.items()
            if name in found.values
        ],
    }

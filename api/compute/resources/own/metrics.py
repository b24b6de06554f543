"""`/metrics`: numbers for monitoring, for administrators; micronova's own."""

from __future__ import annotations

import datetime
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from common import clock
from db.reads import metrics


class Metrics:
    """Counts of the whole cloud."""

    @operation(policies.METRICS)
    def show(self, call: Call) -> Any:
        """Count servers, open operations, services, findings and VMIDs; show the last audit."""
        up_since = clock.utcnow() - datetime.timedelta(
            seconds=call.cloud.conf.api.service_down_seconds
        )
        found = call.read(metrics.read, up_since)
        return {
            "metrics": {
                "servers": [
                    {"vm_state": state, "count": count} for state, count in found.servers.items()
                ],
                "held_servers": found.held_servers,
                "operations": [
                    {"state": state, "count": count} for state, count in found.operations.items()
                ],
                "oldest_operation_at": clock.iso(found.oldest_operation_at),
                "findings": [
                    {"kind": kind, "severity": severity, "count": count}
                    for (kind, severity), count in found.findings.items()
                ],
                "services": [
                    {"binary": binary, "state": "up" if up else "down", "count": count}
                    for (binary, up), count in found.services.items()
                ],
                "vmids": [
                    {"cluster": cluster, "state": state, "count": count}
                    for (cluster, state), count in found.vmids.items()
                ],
                "audit": {
                    "started_at": clock.iso(found.audit_started_at),
                    "finished_at": clock.iso(found.audit_finished_at),
                },
            }
        }

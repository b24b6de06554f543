"""What a bulk migration looks at before it decides: three queries, however many servers."""

from __future__ import annotations

from common import clock
from common.moving import Situation
from conductor.flows.bulk.decide import Facts, Seen
from conductor.plans import BulkPlan
from conductor.store import bulk_migrations as store
from conductor.store import registry
from conductor.store.transactions import Transaction


def look(connection: Transaction, plan: BulkPlan, *, late: bool = False) -> Facts:
    """Return the servers and migrations of the plan, and the servers of the host it drains."""
    # Before the servers: what ends between the two reads has moved its server by the second.
    states = store.states(connection, plan)
    uuids = [move.server_uuid for move in plan.moves]
    rows = store.servers_of(connection, uuids, plan.target.host)
    pins = registry.pins(connection, {str(row.host) for row in rows})
    seen = [
        Seen(
            row.uuid,
            row.name,
            row.host,
            row.task_state,
            Situation(
                row.vm_state,
                row.vmid,
                row.flavor.get("extra_specs") or {},
                pins.get(row.host, {}),
                held=row.held,
            ),
        )
        for row in rows
    ]
    return Facts({one.uuid: one for one in seen}, states, clock.utcnow(), late)

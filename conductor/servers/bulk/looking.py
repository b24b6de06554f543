"""What a bulk migration looks at before it decides: four queries, however many servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common import clock
from common.moving import Situation
from conductor.plans import BulkPlan
from conductor.servers.bulk.decide import Facts, Seen
from conductor.store.hosts import registry
from conductor.store.ledger import bulk_migrations as store
from conductor.store.transactions import Transaction
from conductor.volumes import host_pins


def look(connection: Transaction, plan: BulkPlan, *, late: bool = False) -> Facts:
    """Return the servers and migrations of the plan, and the servers of the host it drains."""
    # Before the servers: what ends between the two reads has moved its server by the second.
    states = store.states(connection, plan)
    uuids = [move.server_uuid for move in plan.moves]
    rows = store.servers_of(connection, uuids, plan.target.host)
    reported = registry.pins(connection, {str(row.host) for row in rows})
    by_volumes = host_pins.pinned(connection, [row.uuid for row in rows])
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
                _pinned(row, reported, by_volumes),
                held=row.held,
            ),
        )
        for row in rows
    ]
    return Facts({one.uuid: one for one in seen}, states, clock.utcnow(), late)


def _pinned(
    row: Any, reported: Mapping[str, Mapping[str, str]], by_volumes: Mapping[str, str]
) -> Mapping[str, str]:
    """Return why VMs can't leave their node; see ``Situation.pinned``."""
    here = reported.get(row.host, {})
    return {**here, str(row.vmid): by_volumes[row.uuid]} if row.uuid in by_volumes else here

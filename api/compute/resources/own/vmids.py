"""`/vmids`: reserved and quarantined VMIDs, for administrators."""

from __future__ import annotations

from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import vmids as schemas
from common import clock
from db.reads.servers import vmids


class Vmids:
    """The VMIDs of the clusters' bands that aren't free."""

    @operation(policies.VMID_READ, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List VMIDs that aren't free, quarantined first; filters: `state`, `cluster`, `vmid`."""
        limit, _ = call.query.page(call.max_limit)
        vmid = call.query.last("vmid")
        found = call.read(
            vmids.list_vmids,
            limit,
            state=call.query.last("state"),
            cluster=call.query.last("cluster"),
            vmid=None if vmid is None else int(vmid),
        )
        return {"vmids": [_view(one) for one in found]}


def _view(row: vmids.Vmid) -> dict[str, Any]:
    return {
        "cluster": row.cluster,
        "vmid": row.vmid,
        "state": row.state,
        "server": row.server_uuid,
        "image": row.image_id,
        "reason": row.reason,
        "since": clock.iso(row.since),
        "age_seconds": max(0, int((clock.utcnow() - row.since).total_seconds())),
    }

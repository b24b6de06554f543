"""Whether a parked server may come back on the host that has its disk, which is claimed then."""

from __future__ import annotations

from common.states import VmState
from conductor.engine.stages import Task
from conductor.flows.disks.parking import Parking
from conductor.flows.move import own_host
from conductor.plans import ResizePlan
from conductor.store import registry
from conductor.sync import allocations


class OwnHost(Parking):
    """The host of a parked server."""

    def refused(self, task: Task) -> str | None:
        """Return why it can't come back on its own host, or None: that is claimed."""
        server, asked = task.server, task.operation.planned(ResizePlan).asked_host
        if not task.fresh:
            # A run before this one may have claimed it.
            self._hold(task, allocations.wanted(server))
        if asked not in (None, server.host):
            return f"Host {asked} is asked for."
        with self._cloud.store.read() as connection:
            here, _ = registry.host(connection, str(server.host))
        if server.pinned_availability_zone not in (None, here.availability_zone):
            return f"Availability zone {server.pinned_availability_zone} is asked for."
        if server.vm_state == VmState.SHELVED_OFFLOADED:
            parked = {**server.flavor, "vcpus": 0, "memory_mib": 0}
            decision = own_host.decide(
                self._cloud, task.operation.ctxt, server, parked, dict(server.flavor)
            )
            if decision.host is None:
                return f"Host {server.host} can't take it: {decision.reason}"
        if not self._hold(task, allocations.whole(server)):
            return (
                f"Host {server.host} has not enough left: {allocations.whole(server)} are "
                "asked for."
            )
        return None

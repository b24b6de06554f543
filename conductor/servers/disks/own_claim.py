"""Whether a parked server may come back on the host that has its disk, which is claimed then."""

from __future__ import annotations

import contextlib

from common.errors import GenerationConflict
from common.resources.states import OPEN_STATES, VmState
from conductor.engine.stages import Task
from conductor.plans import ResizePlan
from conductor.servers.disks.parking import Parking
from conductor.servers.move import own_host
from conductor.store.hosts import registry
from conductor.store.ledger import operations as ledger
from conductor.store.servers import servers
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

    def give_back(self, task: Task) -> None:
        """Set the claim to what the record says: ours may have been made when it was too late.

        If another operation works on the server, that decides about its claim. The claim is read
        before the record, so that a change in between wins. Raises Unavailable.
        """
        there = self._cloud.placement.allocations_of(task.server.uuid)
        with self._cloud.store.read() as connection:
            server = servers.get(connection, task.server.uuid)
            now = ledger.get(connection, server.operation_id or 0)
            here, _ = registry.host(connection, str(task.server.host))
        if server.host != task.server.host or (now is not None and now.state in OPEN_STATES):
            return
        kept = {} if server.deleted_at is not None else allocations.wanted(server)
        wanted = {here.uuid: kept} if kept else {}
        if {uuid: dict(some) for uuid, some in there.by_provider.items()} == wanted:
            return
        with contextlib.suppress(GenerationConflict):
            self._cloud.placement.replace(
                server.uuid, wanted, server.project_id, server.user_id, there.generation
            )

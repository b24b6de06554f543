"""Shelve servers: the VM is parked on its host, and all resources but its disk are released.

Nothing is copied: an image without data lists the server while it is shelved, unless it boots from
a volume. The saved memory of a suspended server is not removed.
"""

from __future__ import annotations

import dataclasses

from common import ids
from common.log import logger
from common.messages.commands import Power, PowerAction
from common.messages.reports import Category, Failure, VmSeen
from common.resources.states import OperationState, PowerState, TaskState, VmState, found_well
from conductor.cloud import failure_of
from conductor.engine import close
from conductor.engine.stages import Stage, Table, Task, answer
from conductor.servers.disks.parking import Parking
from conductor.store.images import server_images
from conductor.store.ledger import leases, transitions
from conductor.store.ledger import operations as ledger
from conductor.store.transactions import Transaction
from conductor.sync import allocations

LOG = logger(__name__)


class ShelveFlow(Parking):
    """The flow of ``shelve`` and of ``shelveOffload``, which is its last stage."""

    def table(self, *, stop: bool = True) -> Table[Task]:
        """Return the stages; behind the stop there is no way but forward."""
        offload = Stage("offload", self._offload, shown=TaskState.SHELVING_OFFLOADING, final=True)
        if not stop:
            return Table((offload,), on_superseded=self._on_superseded)
        first = Stage("stop", self._stop, answer(Power, self._stopped), TaskState.SHELVING)
        return Table(
            (first, offload), on_superseded=self._on_superseded, on_deadline=self._on_deadline
        )

    def _stop(self, task: Task) -> Task | None:
        if task.server.vm_state == VmState.SUSPENDED:
            return self._park(task, None)
        if not self._send(task, PowerAction.STOP):
            self._failed(task, self._no_agent(task), PowerState.NOSTATE)
        return None

    def _stopped(self, task: Task, outcome: VmSeen) -> Task | None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome), outcome.power_state)
            return None
        return self._park(task, outcome.power_state)

    def _park(self, task: Task, seen: int | None) -> Task | None:
        """Store the image that lists it, and give back what it claims unless it is to keep it.

        ``seen`` is the power state that the agent saw; None: it was not asked.
        """
        operation, server = task.operation, task.server
        # Nova offloads a server that boots from a volume at once: there is nothing to wait for.
        offloads = server.volume_backed or self._cloud.conf.conductor.shelved_offload_time == 0

        def work(connection: Transaction) -> Task:
            if not server.volume_backed:
                server_images.list_parked(connection, ids.new_uuid(), server)
            moved = transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState.SHELVED,
                task_state=TaskState.SHELVING_OFFLOADING if offloads else None,
                power_state=PowerState.SUSPENDED if seen is None else seen,
            )
            if offloads and seen is None:
                leases.advance(connection, operation, operation.plan, "offload", self._cloud.name)
            elif offloads:
                leases.reach_owned(
                    *(connection, operation, operation.plan, "offload"),
                    *(self._cloud.name, self._cloud.lease_seconds),
                )
            else:
                ledger.close(connection, operation.id, OperationState.DONE)
            return dataclasses.replace(task.at("offload"), server=moved)

        parked = self._cloud.store.run(work)
        LOG.info("Server %s is shelved.", server.uuid)
        return parked if offloads else None

    def _offload(self, task: Task) -> None:
        """Give back all but the disk. Raises Unavailable to be repeated."""
        self._hold(task, allocations.parked(task.server))
        close.done(self._cloud, task, VmState.SHELVED_OFFLOADED)
        LOG.info("Server %s is offloaded.", task.server.uuid)

    def _failed(self, task: Task, failure: Failure, seen: int) -> None:
        if close.waits(self._cloud, task.operation, failure):
            return
        before = task.server.vm_state
        if seen == PowerState.NOSTATE:
            close.failed(self._cloud, task, failure, VmState(before))
        else:
            well = found_well(before, seen)
            close.failed(self._cloud, task, failure, well, power_state=seen)

    def _on_deadline(self, task: Task) -> None:
        failure = Failure(Category.TASK_TIMEOUT, "It was not stopped in time.")
        close.failed(self._cloud, task, failure, VmState(task.server.vm_state))

"""Attach and detach a volume: one command to the agent, which looks before it acts.

A volume whose attachment fails is available again once it is seen that the VM doesn't name it;
one that the guest keeps stays the server's.
"""

from __future__ import annotations

import functools
from typing import Any

from common import clock, volumes
from common.log import logger
from common.messages.commands import PlugVolume
from common.messages.reports import Failure, Outcome
from common.states import OperationState
from common.volumes import ATTACH, DETACH, AttachStatus
from conductor.cloud import failure_of
from conductor.engine import ends, unwinding
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.flows.guest.begin_volume import PLUG, UNPLUG
from conductor.flows.guest.plugging import Plugging, Unplugging, placed
from conductor.plans import PlugVolumePlan
from conductor.store import leases, servers
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, records

LOG = logger(__name__)


class _Plugging(Plugging):
    """Sends the command about a volume."""

    def _send(self, task: Task, *, on: bool) -> bool:
        """Send the command; return whether there was an agent to send it."""
        operation = task.operation
        where, plan = placed(task.server), operation.planned(PlugVolumePlan)
        if where is None:
            return False
        worker = leases.worker_with(operation.lease_owner) if task.fresh else None
        worker = worker or self._cloud.take_to(operation, where.host)
        if worker is None:
            return False
        late = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        command = PlugVolume(
            operation.id,
            operation.attempt,
            task.server.uuid,
            where,
            late if task.unwinding or operation.deadline is None else operation.deadline,
            volume_id=plan.volume_id,
            volid=plan.volid,
            holder=plan.holder,
            on=on,
            slot=plan.slot,
            others=self._others(task) if on else (),
            serial=volumes.serial(plan.volume_id),
            readonly=plan.readonly,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)
        return True

    def _others(self, task: Task) -> tuple[int, ...]:
        """Return the slots that no volume of the server has: its VM may have disks of its own."""
        with self._cloud.store.read() as connection:
            used = {one.slot for one in attachments.of_server(connection, task.server.uuid)}
        return tuple(slot for slot in volumes.SLOTS if slot not in used)


class AttachVolumeFlow(_Plugging):
    """The flow of the action ``attach_volume``."""

    def table(self) -> Table[Task]:
        """Return the stages; the attachment was written by what accepted it."""
        is_back = functools.partial(ends.again_unless_ok, self._cloud)
        back = Undo("unplug_back", self._unplug_again, is_back, _give_back)
        return Table(
            (Stage(PLUG, self._plug, self._plugged, undo=back),),
            lost=self._lost,
            late=lambda task: self._unwind(task, self._too_late(task)),
            undone=_undone,
            owns=False,
            taken=lambda task: task.going,
        )

    def _plug(self, task: Task) -> None:
        if not self._send(task, on=True):
            self._failed(task, self._silent(task))

    def _plugged(self, task: Task, outcome: Outcome) -> None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return
        self._cloud.store.run(lambda c: self._attached(c, task, outcome.slot))
        LOG.info("Volume %s is attached.", task.operation.planned(PlugVolumePlan).volume_id)

    @staticmethod
    def _attached(connection: Transaction, task: Task, slot: int | None) -> None:
        row = _locked(connection, task)
        # Closed first: that says whether another report ended it, without a query of its own.
        if not ledger.close(connection, task.operation.id, OperationState.DONE):
            return
        if row is not None and records.end(connection, row, ATTACH, ok=True):
            attachments.set_status(connection, row.id, task.server.uuid, AttachStatus.ATTACHED)
            if slot is not None:
                attachments.place(connection, row.id, task.server.uuid, slot)

    def _failed(self, task: Task, failure: Failure) -> None:
        unwinding.again_or_begin(self._cloud, self.table(), task, failure)

    def _unwind(self, task: Task, failure: Failure) -> None:
        unwinding.begin(self._cloud, self.table(), task, failure)


class DetachVolumeFlow(_Plugging, Unplugging):
    """The flow of the action ``detach_volume``."""

    _stage = UNPLUG

    def _release(self, connection: Transaction, task: Task) -> None:
        row = _volume(connection, task)
        if row is not None:
            free(connection, row, task, DETACH, ok=True)

    def _keep(self, connection: Transaction, task: Task, failure: Failure) -> None:
        row = _volume(connection, task)
        if row is not None and self._has(connection, task):
            records.end(connection, row, DETACH, ok=False, fault=failure.message)
            attachments.set_status(connection, row.id, task.server.uuid, AttachStatus.ATTACHED)

    def _has(self, connection: Transaction, task: Task) -> bool:
        found = attachments.of_volume(connection, task.operation.planned(PlugVolumePlan).volume_id)
        return found is not None and found.server_uuid == task.server.uuid


def free(connection: Transaction, row: Any, task: Task, action: str, *, ok: bool) -> None:
    """Have a volume that is locked belong to no server, and keep which one had it last."""
    server = task.server
    user = {"server_uuid": server.uuid, "node": server.node, "vmid": server.vmid}
    # Where it is not the server's any more, what it shows is another one's business.
    if attachments.delete(connection, row.id, task.server.uuid):
        records.end(connection, row, action, ok=ok, last_user=user)


def _locked(connection: Transaction, task: Task) -> Any | None:
    """Lock the server, then the volume; return the volume's row, None if it is gone."""
    servers.get(connection, task.server.uuid, lock=True)
    return _volume(connection, task)


def _volume(connection: Transaction, task: Task) -> Any | None:
    """Lock the volume, after its server; return its row, None if it is gone."""
    return records.held(connection, task.operation.planned(PlugVolumePlan).volume_id)


def _give_back(connection: Transaction, task: Task, failure: Failure | None) -> Task:
    row = _locked(connection, task)
    if row is not None:
        free(connection, row, task, ATTACH, ok=False)
    return task


def _undone(connection: Transaction, task: Task) -> None:
    ledger.close(connection, task.operation.id, OperationState.FAILED, task.operation.message)

"""Extends volumes: at rest in their holder, or in the server that has them."""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Invalid
from common.log import logger
from common.messages.commands import GrowVolume, VolumeUser
from common.messages.reports import Category, Failure, Outcome
from common.states import InternalAction, OperationState, PowerState, ResourceType
from common.volumes import EXTENDABLE_IN_USE, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import begins, done, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import VolumePlan
from conductor.store import operations as ledger
from conductor.store import servers
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, quota, records, types
from conductor.volumes import beginning, park_volume, remove_volume
from conductor.volumes.load import VolumeWork, load

LOG = logger(__name__)


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    row: Any,
    size_gib: int,
    *,
    in_use: bool,
) -> Operation:
    """Write the operation that extends a volume that is locked, for ``cloud.start``.

    Its new size counts from now on. ``in_use``: also while a server has it. Raises Invalid,
    QuotaExceeded.
    """
    if size_gib <= row.size_gib:
        raise Invalid(
            "Invalid input received: New size for extend must be greater than current size. "
            f"(current: {row.size_gib}, extended: {size_gib})."
        )
    beginning.begin(connection, row, VolumeAction.EXTEND, EXTENDABLE_IN_USE if in_use else ())
    _require_no_memory(connection, row)
    type_ = None if row.type_id is None else types.get(connection, row.type_id)
    name = None if type_ is None else str(type_.name)
    more = {"gigabytes": size_gib - row.size_gib}
    quota.take(connection, row.project_id, cloud.conf, more, name, size_gib)
    where = remove_volume.place_of(row)
    item = begins.new(
        cloud,
        VolumeAction.EXTEND,
        row.id,
        row.project_id,
        resource_type=ResourceType.VOLUME,
        plan=VolumePlan(where, row.storage, size_gib, row.size_gib, row.volid),
    )
    operation = begins.begin_now(connection, cloud, ctxt, item)
    records.change(connection, row.id, size_gib=size_gib)
    return operation


def _require_no_memory(connection: Transaction, row: Any) -> None:
    """Raise Invalid for a volume of a server that is suspended, also if it was shelved since.

    Proxmox VE keeps a lock on its VM, whose disks can't be resized.
    """
    attached = attachments.of_volume(connection, row.id)
    if attached is None:
        return
    server = servers.get(connection, attached.server_uuid)
    if server.power_state == PowerState.SUSPENDED:
        raise Invalid(
            f"Invalid volume: Volume {row.id} can't be extended while the memory of server "
            f"{server.uuid} is saved on its node: resume or unshelve that."
        )


class ExtendVolumeFlow:
    """The flow of ``VolumeAction.EXTEND``. It may run twice: sizes are absolute."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[VolumeWork]:
        """Return the one stage: an agent grows the volume."""
        stage = Stage("grow", self._send, self._heard)
        return Table((stage,), lost=None, late=self._late, owns=False, load=load)

    def _late(self, task: VolumeWork) -> None:
        self._fail(task, Failure(Category.TASK_TIMEOUT, "The volume was not extended in time."))

    def _send(self, task: VolumeWork) -> None:
        operation, plan = task.operation, task.operation.planned(VolumePlan)
        with self._cloud.store.read() as connection:
            user, host = self._user(connection, operation)
        worker = self._cloud.take_to(operation, host or task.place.host)
        if worker is None:
            text = f"The agent of host {host or task.place.host} does not answer."
            self._failed(task, Failure(Category.NODE_UNHEALTHY, text))
            return
        command = GrowVolume(
            operation.id,
            operation.attempt,
            operation.resource_id,
            task.place,
            operation.deadline or clock.utcnow(),
            volid=str(plan.volid),
            size_gib=plan.size_gib,
            user=user,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    @staticmethod
    def _user(
        connection: Transaction, operation: Operation
    ) -> tuple[VolumeUser | None, str | None]:
        """Return the server that has the volume, and its host."""
        attached = attachments.of_volume(connection, operation.resource_id)
        if attached is None:
            return None, None
        server = servers.get(connection, attached.server_uuid)
        if server.vmid is None or server.node is None:
            return None, None
        return VolumeUser(server.uuid, server.node, server.vmid), server.host

    def _heard(self, task: VolumeWork, outcome: Outcome) -> None:
        if not outcome.ok:
            unknown = Failure(Category.UNKNOWN_OUTCOME, "The volume was not seen grown.")
            self._failed(task, outcome.failure or unknown)
            return
        self._cloud.store.run(lambda c: self._end(c, task.operation, None))
        LOG.info("Volume %s is extended.", task.operation.resource_id)

    def _failed(self, task: VolumeWork, failure: Failure) -> None:
        if not ends.waits(self._cloud, task.operation, failure):
            self._fail(task, failure)

    def _fail(self, task: VolumeWork, failure: Failure) -> None:
        LOG.warning("Volume %s: %s", task.operation.resource_id, failure.message)
        self._cloud.store.run(lambda c: self._end(c, task.operation, failure))
        self._cloud.wake()

    def _tell_server(self, connection: Transaction, operation: Operation) -> None:
        """Have the server that has the volume show that it was extended, as Nova's does."""
        attached = attachments.of_volume(connection, operation.resource_id)
        if attached is not None:
            server = servers.get(connection, attached.server_uuid)
            action = InternalAction.EXTEND_VOLUME
            done.record(connection, self._cloud, operation.ctxt, server, action)

    def _end(self, connection: Transaction, operation: Operation, failure: Failure | None) -> None:
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        if failure is None:
            ledger.close(connection, operation.id, OperationState.DONE)
            self._tell_server(connection, operation)
        else:
            ends.close_failed(connection, operation, failure)
        if failure is not None and row is not None and row.volid is not None:
            park_volume.begin(connection, self._cloud, operation.ctxt, row)
        if row is not None and failure is None:
            # Its server went meanwhile, and it goes with that.
            remove_volume.after_snapshots(connection, self._cloud, row)
        if row is None or row.status != VolumeStatus.EXTENDING:
            return
        values: dict[str, Any] = {}
        if failure is not None:
            former = operation.planned(VolumePlan).former_gib
            values = {"size_gib": former, "fault": failure.message}
        records.end(connection, row, VolumeAction.EXTEND, ok=failure is None, **values)

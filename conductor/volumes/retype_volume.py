"""Gives volumes another type: its storage takes them, if it isn't the one that has them already.

A volume that is moved counts for both types and both storages until an agent says where it is.
One that can't be moved stays where it was, and is available again; the reason is its fault.
"""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Invalid, NotFound
from common.log import logger
from common.messages.commands import RetypeVolume, VolumeUser
from common.messages.reports import Category, Failure, MadeVolume, Outcome
from common.states import OperationState, ResourceType
from common.volumes import RULES, VolumeAction, VolumeStatus
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends, unwinding
from conductor.engine.stages import Stage, Table, Undo
from conductor.plans import VolumePlan
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, quota, records, snapshots, types
from conductor.store.volumes.backends import Backend
from conductor.volumes import places, remove_volume
from conductor.volumes.load import VolumeWork, load
from conductor.volumes.places import Wish

LOG = logger(__name__)

_NOTHING_NEW = {"new_type_id": None, "new_storage": None, "new_shared": None}


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    row: Any,
    type_id: str,
    *,
    may_move: bool,
) -> None:
    """Begin to give a volume that is locked another type.

    ``may_move``: also where another storage must take it. Where that can't be, the volume has a
    fault, and nothing else changes, as in Cinder. Raises NotFound, Invalid, QuotaExceeded.
    """
    type_ = types.usable(connection, type_id, row.project_id)
    if ctxt.is_admin:
        type_ = types.get(connection, type_id)
    if type_ is None:
        raise NotFound(f"Volume type {type_id} could not be found.")
    taken = snapshots.of_volume(connection, row.id)
    _take_quota(connection, cloud, row, type_, taken)
    _require_status(row, type_)
    snapshots.require_alone(connection, row)
    operation = _operation(connection, cloud, ctxt, row, type_)
    if type_.storage in ("", row.storage):
        records.change(connection, row.id, type_id=type_.id)
        ledger.close(connection, operation.id, OperationState.DONE)
        return
    place = _place(connection, cloud, row, type_, may_move=may_move)
    if taken and not isinstance(place, str):
        place = "A volume that is moved to another storage must not have snapshots."
    if isinstance(place, str):
        # Owners know storages by their types, and no hosts.
        told = None if str(row.host) in place else place
        why = Failure(Category.NO_VALID_HOST, place, owner_message=told)
        ends.close_failed(connection, operation, why)
        records.change(connection, row.id, fault=place)
        return
    records.show_begun(connection, row, VolumeAction.RETYPE)
    shared = place.storage.shared
    values = {"new_type_id": type_.id, "new_storage": type_.storage, "new_shared": shared}
    records.change(connection, row.id, **values)


def _operation(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, type_: Any
) -> Operation:
    where, storage = remove_volume.place_of(row), str(type_.storage)
    item = begins.new(
        cloud,
        VolumeAction.RETYPE,
        row.id,
        row.project_id,
        resource_type=ResourceType.VOLUME,
        plan=VolumePlan(where, storage, row.size_gib, volid=row.volid),
    )
    return begins.begin_later(connection, ctxt, item)


def _take_quota(
    connection: Transaction, cloud: Cloud, row: Any, type_: Any, taken: list[Any]
) -> None:
    gib = row.size_gib + sum(one.size_gib for one in taken)
    wanted = {"volumes": 1, "gigabytes": gib, "snapshots": len(taken)}
    quota.take_of_type(connection, row.project_id, cloud.conf, wanted, str(type_.name))


def _require_status(row: Any, type_: Any) -> None:
    if row.status == VolumeStatus.IN_USE and type_.id != row.type_id:
        raise Invalid(
            f"Invalid volume: Volume {row.id} is in-use: it can be retyped only while no server "
            "has it. Detach it first."
        )
    if row.status not in RULES[VolumeAction.RETYPE].begins or type_.id == row.type_id:
        raise Invalid(
            "Invalid volume: Retype needs volume to be in available state, not be part of an "
            "active migration or a consistency group, and requested type has to be different "
            f"from the one from the volume; volume {row.id} is {row.status}."
        )


def _place(
    connection: Transaction, cloud: Cloud, row: Any, type_: Any, *, may_move: bool
) -> Backend | str:
    """Return the storage on the holder's host that takes the volume, or why there is none."""
    specs = types.specs_of(type_)
    wish = Wish(row.size_gib, storage=type_.storage, on=row.host, specs=specs)
    promised, down = backends.promised(connection), cloud.down(connection)
    found = places.choose(backends.read(connection), promised, wish, down)
    if isinstance(found, str) or may_move:
        return found
    return (
        f"No valid backend was found: storage {row.storage}, which has the volume, is not that of "
        f"type {type_.name}, and its migration is not allowed (migration_policy: never)."
    )


class RetypeVolumeFlow:
    """The flow of ``VolumeAction.RETYPE``.

    What fails is settled: an agent says where the volume is, and leaves nothing of it elsewhere.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[VolumeWork]:
        """Return the one stage: an agent moves the volume."""
        settle = Undo[VolumeWork]("settle", self._settle, self._settled)
        stage = Stage("move", self._send, self._heard, undo=settle)
        return Table(
            (stage,), lost=None, late=self._late, undone=self._undone, owns=False, load=load
        )

    def _late(self, task: VolumeWork) -> None:
        failure = Failure(Category.TASK_TIMEOUT, "The volume was not retyped in time.")
        unwinding.begin(self._cloud, self.table(), task, failure)

    def _send(self, task: VolumeWork) -> None:
        operation = task.operation
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            text = f"The agent of host {task.place.host} does not answer."
            self._failed(task, Failure(Category.NODE_UNHEALTHY, text, host=task.place.host))
            return
        command = self._command(task, operation.deadline or clock.utcnow(), settle=False)
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _command(self, task: VolumeWork, deadline: Any, *, settle: bool) -> RetypeVolume:
        operation, plan = task.operation, task.operation.planned(VolumePlan)
        had = None if task.volume is None else task.volume.last_user
        users = () if had is None else (_user(had),)
        return RetypeVolume(
            operation.id,
            operation.attempt,
            operation.resource_id,
            task.place,
            deadline,
            volid=str(plan.volid),
            storage=plan.storage,
            users=users,
            settle=settle,
        )

    def _heard(self, task: VolumeWork, outcome: Outcome) -> None:
        made = outcome.volume
        if not outcome.ok or made is None:
            self._failed(task, _why(outcome))
            return
        self._cloud.store.run(lambda c: self._moved(c, task.operation, made))
        LOG.info("Volume %s is retyped.", task.operation.resource_id)

    def _failed(self, task: VolumeWork, failure: Failure) -> None:
        LOG.warning("Volume %s: %s", task.operation.resource_id, failure.message)
        unwinding.again_or_begin(self._cloud, self.table(), task, failure)

    @staticmethod
    def _moved(connection: Transaction, operation: Operation, made: MadeVolume) -> None:
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        ledger.close(connection, operation.id, OperationState.DONE)
        if row is not None:
            _keep(connection, row, made)
            records.end(connection, row, VolumeAction.RETYPE, ok=True)

    # --- failure

    def _settle(self, task: VolumeWork) -> bool:
        operation = task.operation
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return False
        deadline = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        command = self._command(task, deadline, settle=True)
        self._cloud.compute.execute(operation.ctxt, worker, command)
        return False

    def _settled(self, task: VolumeWork, outcome: Outcome) -> bool:
        """Return whether an agent has said where the volume is, and keep it if it has moved."""
        operation, made = task.operation, outcome.volume
        if not outcome.ok or made is None:
            ends.again(self._cloud, operation, _why(outcome))
            return False
        if made.volid != operation.planned(VolumePlan).volid:
            self._cloud.store.run(lambda c: self._keep_moved(c, operation, made))
        return True

    @staticmethod
    def _keep_moved(connection: Transaction, operation: Operation, made: MadeVolume) -> None:
        row = records.held(connection, operation.resource_id)
        if row is not None and not ends.has_ended(connection, operation):
            _keep(connection, row, made)

    @staticmethod
    def _undone(connection: Transaction, task: VolumeWork) -> None:
        """End with the volume where it was; or done, as it was moved after all."""
        operation = task.operation
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        moved = row is not None and row.volid != operation.planned(VolumePlan).volid
        state = OperationState.DONE if moved else OperationState.FAILED
        ledger.close(connection, operation.id, state, None if moved else operation.message)
        if row is not None:
            values = {} if moved else {"fault": operation.message, **_NOTHING_NEW}
            records.end(connection, row, VolumeAction.RETYPE, ok=moved, **values)


def _keep(connection: Transaction, row: Any, made: MadeVolume) -> None:
    """Store where a volume that is locked has been moved, once; its quota goes along."""
    if row.new_type_id is None:
        return
    records.change(
        connection,
        row.id,
        volid=made.volid,
        type_id=row.new_type_id,
        storage=row.new_storage,
        shared=bool(row.new_shared),
        snapshot_way=made.snapshots or None,
        **_NOTHING_NEW,
    )
    if made.snapshots:
        types.learn(connection, row.new_type_id, made.snapshots)


def _why(outcome: Outcome) -> Failure:
    unknown = Failure(Category.UNKNOWN_OUTCOME, "The volume was not seen on its storage.")
    return outcome.failure or unknown


def _user(had: Any) -> VolumeUser:
    return VolumeUser(had["server_uuid"], had["node"], had["vmid"])

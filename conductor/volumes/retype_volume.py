"""Retypes volumes: moves the disk if the new type's storage is another one.

While a volume is moved it counts for both types and both storages, until an agent reports where it
is. A volume that can't be moved is available where it was, with the reason as its fault.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from common.context import RequestContext
from common.errors import Invalid, NotFound
from common.messages.commands import RetypeVolume
from common.messages.reports import Category, Failure, VolumeSeen
from common.resources.states import OperationState, ResourceType
from common.resources.volumes import RULES, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import close, start
from conductor.engine.command_end import End
from conductor.engine.stages import Stage, Undo, answer
from conductor.engine.unwound_command import UnwoundCommand
from conductor.plans import VolumePlan
from conductor.store.ledger import operations as ledger
from conductor.store.quotas import volume_quotas
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, snapshots, types, volumes
from conductor.store.volumes.backends import Backend
from conductor.volumes import remove_volume, storage_choice
from conductor.volumes.storage_choice import VolumePlacement
from conductor.volumes.volume_command import VolumeCommand, VolumeWork

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
        volumes.change(connection, row.id, type_id=type_.id)
        ledger.close(connection, operation.id, OperationState.DONE)
        return
    place = _place(connection, cloud, row, type_, may_move=may_move)
    if taken and not isinstance(place, str):
        place = "A volume that is moved to another storage must not have snapshots."
    if isinstance(place, str):
        # Owners know storages by their types, and no hosts.
        for_owner = None if str(row.host) in place else place
        why = Failure(Category.NO_VALID_HOST, place, owner_message=for_owner)
        close.close_failed(connection, operation, why)
        volumes.change(connection, row.id, fault=place)
        return
    volumes.show_begun(connection, row, VolumeAction.RETYPE)
    shared = place.storage.shared
    values = {"new_type_id": type_.id, "new_storage": type_.storage, "new_shared": shared}
    volumes.change(connection, row.id, **values)


def _operation(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, type_: Any
) -> Operation:
    where, storage = remove_volume.place_of(row), str(type_.storage)
    plan = VolumePlan(where, RetypeVolume(volid=str(row.volid), storage=storage))
    resource = (ResourceType.VOLUME, row.id)
    item = start.new(cloud, VolumeAction.RETYPE, resource, row.project_id, plan)
    return start.begin_later(connection, ctxt, item)


def _take_quota(
    connection: Transaction, cloud: Cloud, row: Any, type_: Any, taken: list[Any]
) -> None:
    gib = row.size_gib + sum(one.size_gib for one in taken)
    wanted = {"volumes": 1, "gigabytes": gib, "snapshots": len(taken)}
    volume_quotas.take_of_type(connection, row.project_id, cloud.conf, wanted, str(type_.name))


def _require_status(row: Any, type_: Any) -> None:
    if row.status == VolumeStatus.IN_USE and type_.id != row.type_id:
        raise Invalid(
            f"Invalid volume: Volume {row.id} is in-use: it can be retyped only while it is not "
            "attached. Detach it first."
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
    placement = VolumePlacement(row.size_gib, storage=type_.storage, on=row.host, specs=specs)
    promised, down = backends.promised(connection), cloud.down(connection)
    found = storage_choice.choose(backends.read(connection), promised, placement, down)
    if isinstance(found, str) or may_move:
        return found
    return (
        f"No valid backend was found: storage {row.storage}, which has the volume, is not that of "
        f"type {type_.name}, and its migration is not allowed (migration_policy: never)."
    )


class RetypeVolumeFlow(UnwoundCommand[VolumeWork, VolumeSeen], VolumeCommand[VolumeSeen]):
    """The flow of ``VolumeAction.RETYPE``.

    What fails is settled: an agent says where the volume is, and leaves nothing of it elsewhere.
    """

    stage = "move"
    unseen = "The volume was not seen on its storage."
    late = "The volume was not retyped in time."

    def stages(self) -> tuple[Stage[VolumeWork], ...]:
        """Return the one stage: an agent moves the volume."""
        (move,) = super().stages()
        return (
            dataclasses.replace(
                move, undo=Undo("settle", self.send_back, answer(RetypeVolume, self._on_settled))
            ),
        )

    def command(self, task: VolumeWork) -> RetypeVolume:
        """Return what moves it, or settles where it is."""
        users = remove_volume.last_users(task.volume)
        return self.planned(task, RetypeVolume, users=users, settle=task.unwinding)

    def succeeded(self, task: VolumeWork, outcome: VolumeSeen) -> bool:
        """Return whether an agent has said where it is."""
        return outcome.ok and outcome.volume is not None

    def write_done(self, connection: Transaction, end: End[VolumeWork, VolumeSeen]) -> None:
        """Record the volume's new type."""
        if end.row is not None:
            _write_moved(connection, end)
            volumes.end(connection, end.row, VolumeAction.RETYPE, ok=True)

    # --- failure

    def _on_settled(self, task: VolumeWork, outcome: VolumeSeen) -> bool:
        """Return whether an agent has said where the volume is, and keep it if it has moved."""
        if not self.succeeded(task, outcome):
            unseen = Failure(Category.UNKNOWN_OUTCOME, self.unseen)
            close.again(self._cloud, task.operation, outcome.failure or unseen)
            return False

        def keep(connection: Transaction) -> None:
            end = End(task, self.lock(connection, task), outcome)
            if end.row is not None and not close.has_ended(connection, task.operation):
                _write_moved(connection, end)

        if End(task, None, outcome).made.volid != task.operation.ordered(RetypeVolume).volid:
            self._cloud.store.run(keep)
        return True

    def write_undone(self, connection: Transaction, task: VolumeWork, row: Any) -> None:
        """End with the volume where it was; or done, as it was moved after all."""
        operation = task.operation
        if row is None or row.volid == operation.ordered(RetypeVolume).volid:
            super().write_undone(connection, task, row)
            return
        ledger.close(connection, operation.id, OperationState.DONE)
        volumes.end(connection, row, VolumeAction.RETYPE, ok=True)

    def write_failed(self, connection: Transaction, end: End[VolumeWork, VolumeSeen]) -> None:
        """Set it to available with its former type."""
        if end.row is not None:
            values = {"fault": end.failure.message, **_NOTHING_NEW}
            volumes.end(connection, end.row, VolumeAction.RETYPE, ok=False, **values)


def _write_moved(connection: Transaction, end: End[VolumeWork, VolumeSeen]) -> None:
    """Store, once, where a locked volume was moved to; its quota moves to the new type."""
    row, made = end.row, end.made
    if row.new_type_id is None:
        return
    volumes.change(
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
        types.set_snapshot_way(connection, row.new_type_id, made.snapshots)

"""Makes volumes: place and VMID are chosen with the record, then an agent makes the holder.

A volume that can't be made becomes ``error``, with the reason. An operation of its own removes
what was made of it; the owner sees the record until deleting it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Invalid, NotFound
from common.messages.commands import MakeVolume
from common.messages.reports import Category, Failure, VolumeMade
from common.resources.states import ResourceType
from common.resources.volumes import VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import close, start
from conductor.engine.command_end import End
from conductor.plans import Place, VolumePlan
from conductor.rpc.volumes.volumes import NewVolume
from conductor.store.ledger.operations import NewOperation
from conductor.store.quotas import volume_quotas
from conductor.store.records import Operation
from conductor.store.servers import vmids
from conductor.store.servers.vmids import BandExhausted
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, backups, types, volumes
from conductor.volumes import (
    build_waiting_for_volume,
    remove_volume,
    sources,
    storage_choice,
    uncertain,
)
from conductor.volumes.volume_command import MakingVolume, VolumeWork

#: statuses of volumes that are made
MAKING = frozenset(
    {VolumeStatus.CREATING, VolumeStatus.DOWNLOADING, VolumeStatus.RESTORING_BACKUP}
)


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, new: NewVolume
) -> tuple[str, Operation | None]:
    """Write a volume with the operation that makes it; return its id and what is to be started.

    Without a place for it the volume is in error at once. Raises NotFound, Invalid,
    QuotaExceeded.
    """
    found = sources.find(connection, new)
    type_ = type_of(connection, cloud, new, found, anybodys=bool(ctxt.is_admin))
    wanted = {"volumes": 1, "gigabytes": new.size_gib}
    name = None if type_ is None else str(type_.name)
    volume_quotas.take(connection, new.project_id, cloud.conf, wanted, name, new.size_gib)
    known = backends.read(connection)
    placement = dataclasses.replace(
        found.placement,
        size_gib=new.size_gib,
        storage=types.storage_of(type_) or found.placement.storage,
        specs=types.specs_of(type_),
        zone=new.availability_zone,
        host=found.host,
    )
    place = storage_choice.choose(
        known, backends.promised(connection), placement, cloud.down(connection)
    )
    if isinstance(place, str):
        return _placeless(connection, cloud, ctxt, new, found, type_, place), None
    try:
        vmid = vmids.reserve(connection, place.cluster, None, None)
    except BandExhausted as error:
        return _placeless(connection, cloud, ctxt, new, found, type_, error.message), None
    volume_id = write(connection, ctxt, new, found, type_, **_where(place, vmid))
    plan = _plan(new, found, place, vmid)
    item = _item(cloud, volume_id, new.project_id, plan)
    return volume_id, start.begin_now(connection, cloud, ctxt, item)


def _placeless(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    new: NewVolume,
    found: sources.Found,
    type_: Any | None,
    why: str,
) -> str:
    """Write a volume that there is no place for, in error, with its operation; return its id."""
    values = {"status": VolumeStatus.ERROR, "fault": why}
    volume_id = write(connection, ctxt, new, found, type_, **values)
    item = _item(
        cloud, volume_id, new.project_id, VolumePlan(command=MakeVolume(size_gib=new.size_gib))
    )
    operation = start.begin_later(connection, ctxt, item)
    failure = Failure(Category.NO_VALID_HOST, why, owner_message=_owner_message(found, why))
    close.close_failed(connection, operation, failure)
    return volume_id


def _owner_message(found: sources.Found, why: str) -> str | None:
    """Return why there is no place as owners may read it; None: it names a host."""
    at = found.placement.at
    hosts = (found.host, found.placement.on, None if at is None else at[1])
    return None if any(host and host in why for host in hosts) else why


def write(
    connection: Transaction,
    ctxt: RequestContext,
    new: NewVolume,
    found: sources.Found,
    type_: Any | None,
    **more: Any,
) -> str:
    """Write the record of a volume that is to be made; return its id. ``more``: columns."""
    values = {
        "bootable": found.bootable,
        "image_metadata": found.image_metadata,
        "status": _making(new),
        **more,
    }
    new = dataclasses.replace(new, type_id=None if type_ is None else type_.id)
    return volumes.insert(connection, new, str(ctxt.user_id), **values)


def _making(new: NewVolume) -> VolumeStatus:
    if new.backup_id is not None:
        return VolumeStatus.RESTORING_BACKUP
    return VolumeStatus.DOWNLOADING if new.image_id else VolumeStatus.CREATING


def make(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    volume_id: str,
    new: NewVolume,
    found: sources.Found,
    place: backends.Backend,
) -> Operation:
    """Write the operation that makes a volume of the record there, due at once.

    Raises BandExhausted.
    """
    vmid = vmids.reserve(connection, place.cluster, None, None)
    volumes.change(connection, volume_id, **_where(place, vmid))
    item = _item(cloud, volume_id, new.project_id, _plan(new, found, place, vmid))
    return start.begin_later(connection, ctxt, item)


def _plan(new: NewVolume, found: sources.Found, place: backends.Backend, vmid: int) -> VolumePlan:
    where = Place(place.host, None, place.cluster, place.node, vmid)
    source, storage = found.source(place.cluster), place.storage.name
    command = MakeVolume(size_gib=new.size_gib, storage=storage, source=source)
    return VolumePlan(where, command, backup_id=new.backup_id)


def _item(cloud: Cloud, volume_id: str, project_id: str, plan: VolumePlan) -> NewOperation:
    resource = (ResourceType.VOLUME, volume_id)
    return start.new(cloud, VolumeAction.CREATE, resource, project_id, plan)


def _where(place: backends.Backend, vmid: int) -> dict[str, Any]:
    """Return the columns of a volume that is made there."""
    return {
        "host": place.host,
        "cluster": place.cluster,
        "node": place.node,
        "storage": place.storage.name,
        "shared": place.storage.shared,
        "availability_zone": place.zone,
        "vmid": vmid,
    }


def type_of(
    connection: Transaction,
    cloud: Cloud,
    new: NewVolume,
    found: sources.Found,
    *,
    anybodys: bool = False,
) -> Any | None:
    """Return the type of a new volume: the type asked for, else that of its source, else that
    named by its image, else the project's default type, else the cloud's.

    ``anybodys``: even if the project may not use the type. Raises NotFound, Invalid.
    """
    if new.type_id is not None:
        row = types.usable(connection, new.type_id, new.project_id)
        if anybodys:
            row = types.get(connection, new.type_id)
        if row is None:
            raise NotFound(f"Volume type {new.type_id} could not be found.")
        return row
    if found.copied is not None and (found.type_id is not None or not found.copied.archive):
        return None if found.type_id is None else types.get(connection, found.type_id)
    if found.wished_type is not None:
        return _of_image(connection, found.wished_type, new.project_id, anybodys=anybodys)
    mine = types.default_of(connection, new.project_id)
    if mine is not None:
        row = types.usable(connection, mine, new.project_id)
        if row is None:
            raise NotFound(f"Volume type {mine} could not be found.")
        return row
    name = cloud.conf.volumes.default_type
    if name:
        row = types.named(connection, name)
        if row is None:
            raise Invalid(f"Volume type name '{name}', the default, could not be found.")
        return row
    return None


def _of_image(connection: Transaction, asked: str, project_id: str, *, anybodys: bool) -> Any:
    """Return the type that an image names, by name or ID. Raises NotFound."""
    row = types.named(connection, asked) or types.get(connection, asked)
    if row is None or not (anybodys or types.usable(connection, row.id, project_id)):
        raise NotFound(f"Volume type with name {asked} could not be found.")
    return row


class CreateVolumeFlow(MakingVolume):
    """The flow of ``VolumeAction.CREATE``."""

    stage = "make"
    unseen = "The volume was not seen there."
    late = "The volume was not made in time."
    wakes = False

    def write_done(self, connection: Transaction, end: End[VolumeWork, VolumeMade]) -> None:
        """Set the volume to available, or attach it to the server that waits for it."""
        backup_id, row, made = end.operation.planned(VolumePlan).backup_id, end.row, end.made
        backups.restored(connection, backup_id)
        if row is None:
            return
        values: dict[str, Any] = {"volid": made.volid, "snapshot_way": made.snapshots or None}
        saved = None if backup_id is None else backups.get(connection, backup_id)
        if saved is not None:
            values |= backups.restored_values(saved, row)
        if made.snapshots and row.type_id is not None:
            types.set_snapshot_way(connection, row.type_id, made.snapshots)
        if row.status in MAKING:
            waits = build_waiting_for_volume.wake(connection, row.id)
            values["status"] = VolumeStatus.ATTACHING if waits else VolumeStatus.AVAILABLE
            if waits:
                self.wake_after(connection)
        volumes.change(connection, row.id, launched_at=clock.utcnow(), **values)
        if row.status == VolumeStatus.DELETING:
            # It was deleted while it was made.
            self._remove(connection, end.operation)
            self.wake_after(connection)

    def write_failed(self, connection: Transaction, end: End[VolumeWork, VolumeMade]) -> None:
        """Set the volume to error; remove what the agent did not confirm as absent."""
        operation, row = end.operation, end.row
        self.wake_after(connection)
        backups.restored(connection, operation.planned(VolumePlan).backup_id)
        if row is None:
            return
        deleted = row.status == VolumeStatus.DELETING
        if not deleted:
            fault = end.failure.message
            volumes.change(connection, row.id, status=VolumeStatus.ERROR, fault=fault)
            build_waiting_for_volume.wake(connection, row.id)
        if not end.outcome.gone:
            self._remove(connection, operation)
            return
        target = operation.plan.target
        vmids.free(connection, str(target.cluster), int(target.vmid or 0))
        if deleted:
            volumes.delete(connection, row.id)
        else:
            volumes.change(connection, row.id, vmid=None)

    def uncertain(self) -> Callable[[Transaction, VolumeWork], None]:
        """Set the volume to error."""
        return uncertain.restored_volume

    def _remove(self, connection: Transaction, operation: Operation) -> None:
        row = volumes.locked(connection, operation.resource_id, None)
        remove_volume.begin(connection, self._cloud, operation.ctxt, row, operation.plan.target)

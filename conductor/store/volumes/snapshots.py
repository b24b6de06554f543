"""The rows of snapshots of volumes. To change a row, lock its volume, if it has one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Invalid, SnapshotNotFound
from common.resources.states import OPEN_STATES, ResourceType
from common.resources.volumes import SnapshotStatus, VolumeStatus
from common.rpc import deadlines
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import VolumeEdit
from conductor.store.volumes.volumes import edited
from conductor.store.volumes.volumes import held as held_volume
from db.schema import operations, volume_snapshots, volumes

_C, _V = volume_snapshots.c, volumes.c
#: volumes being copied from a source; an existing volume that gets another image has a volid
_BEING_MADE = sa.and_(
    _V.status.in_((VolumeStatus.CREATING, VolumeStatus.DOWNLOADING)), _V.volid.is_(None)
)
_IN_FLUX = (SnapshotStatus.CREATING, SnapshotStatus.DELETING)


def insert(
    connection: sa.Connection,
    volume: Any,
    new: NewVolumeSnapshot,
    user_id: str,
    snapshot_id: str,
    **more: Any,
) -> None:
    """Write a new snapshot of a volume, which is being taken."""
    values = {
        "id": snapshot_id,
        "volume_id": volume.id,
        "project_id": volume.project_id,
        "user_id": user_id,
        "name": new.name,
        "description": new.description,
        "status": SnapshotStatus.CREATING,
        "size_gib": volume.size_gib,
        "meta": new.metadata,
        "created_at": clock.utcnow(),
        **more,
    }
    connection.execute(volume_snapshots.insert(), [values])


def insert_found(connection: sa.Connection, volume: Any, **values: Any) -> None:
    """Write a snapshot, of a volume that is locked, that was found."""
    of_volume = {name: getattr(volume, name) for name in ("project_id", "size_gib")}
    row = {"meta": {}, "status": SnapshotStatus.AVAILABLE, "created_at": clock.utcnow()}
    row |= {"volume_id": volume.id, **of_volume, **values}
    connection.execute(volume_snapshots.insert(), [row])


def new_id() -> str:
    """Return the id of a new snapshot."""
    return deadlines.new_uuid()


def get(connection: sa.Connection, snapshot_id: str) -> Any | None:
    """Return a snapshot's row; None: there is no such snapshot."""
    query = sa.select(volume_snapshots).where(_C.id == snapshot_id)
    return connection.execute(query).first()


def locked(connection: sa.Connection, snapshot_id: str, project_id: str | None) -> tuple[Any, Any]:
    """Return the rows of a snapshot and of its volume, both locked. Raises SnapshotNotFound.

    ``project_id``: whose it must be; None: anybody's.
    """
    missing = SnapshotNotFound(f"Snapshot {snapshot_id} could not be found.")
    row = get(connection, snapshot_id)
    if row is None or project_id not in (None, row.project_id):
        raise missing
    volume = held_volume(connection, row.volume_id)
    row = held(connection, snapshot_id)
    if row is None or volume is None:
        raise missing
    return row, volume


def held(connection: sa.Connection, snapshot_id: str) -> Any | None:
    """Return a snapshot's row, locked; None: it is deleted."""
    query = sa.select(volume_snapshots).where(_C.id == snapshot_id).with_for_update()
    return connection.execute(query).first()


def of_volume(connection: sa.Connection, volume_id: str) -> list[Any]:
    """Return a volume's snapshots, the last one first."""
    query = sa.select(volume_snapshots).where(_C.volume_id == volume_id)
    return list(connection.execute(query.order_by(_C.created_at.desc(), _C.id.desc())))


def volumes_of(connection: sa.Connection, snapshot_ids: Collection[str]) -> frozenset[str]:
    """Return the ids of the volumes that these are snapshots of."""
    if not snapshot_ids:
        return frozenset()
    query = sa.select(_C.volume_id).where(_C.id.in_(sorted(snapshot_ids)))
    return frozenset(connection.execute(query).scalars())


def change(connection: sa.Connection, snapshot_id: str, **values: Any) -> None:
    """Change columns of a snapshot that is locked."""
    changed = volume_snapshots.update().where(_C.id == snapshot_id)
    connection.execute(changed.values(updated_at=clock.utcnow(), **values))


def edit(connection: sa.Connection, row: Any, asked: VolumeEdit) -> None:
    """Change what users say of a snapshot that is locked. Raises SnapshotNotFound."""
    values: Mapping[str, Any] = edited(row, asked, SnapshotNotFound, "Snapshot")
    if values:
        change(connection, row.id, **values)


def delete(connection: sa.Connection, snapshot_id: str) -> None:
    """Forget a snapshot confirmed absent."""
    connection.execute(volume_snapshots.delete().where(_C.id == snapshot_id))


def require_alone(connection: sa.Connection, volume: Any) -> None:
    """Raise Invalid while a volume that is locked, or a snapshot of it, is copied or changed."""
    mine = sa.select(_C.id).where(_C.volume_id == volume.id)
    changing = mine.where(_C.status.in_(_IN_FLUX))
    copied = sa.select(_V.id).where(
        _BEING_MADE,
        (_V.source_volume_id == volume.id) | _V.snapshot_id.in_(mine),
    )
    # In error: what is left of one in the holder is removed still.
    cleaned = (
        mine.join(operations, operations.c.resource_id == _C.id)
        .where(_C.snapname.is_not(None))
        .where(operations.c.resource_type == ResourceType.SNAPSHOT)
        .where(operations.c.state.in_(OPEN_STATES))
    )
    what = sa.case(
        (sa.exists(changing) | sa.exists(cleaned), "a snapshot of it is made or removed"),
        (sa.exists(copied), "it is copied"),
    )
    why = connection.execute(sa.select(what)).scalar()
    if why is not None:
        raise Invalid(f"Invalid volume: Volume {volume.id} is busy: {why}.")


def require_uncopied(connection: sa.Connection, row: Any) -> None:
    """Raise Invalid while a volume is made from a locked snapshot."""
    query = sa.select(_V.id).where(_BEING_MADE, _V.snapshot_id == row.id)
    if connection.execute(query.limit(1)).first() is not None:
        raise Invalid(f"Invalid snapshot: Snapshot {row.id} is busy: it is copied.")

"""The rows of backups of volumes. A volume's row, if one is locked, is locked before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import BackupNotFound, Invalid
from common.resources.volumes import BackupStatus, VolumeStatus
from common.rpc import deadlines
from conductor.rpc.volumes.backups import NewBackup
from conductor.rpc.volumes.volumes import VolumeEdit
from conductor.store.volumes.volumes import edited
from db.schema import volume_backups, volumes

_C, _V = volume_backups.c, volumes.c
#: volumes being created; an existing volume that a backup is restored into has a volid
_BEING_MADE = sa.and_(
    _V.status.in_((VolumeStatus.CREATING, VolumeStatus.RESTORING_BACKUP)), _V.volid.is_(None)
)

#: how the name of a volume begins that a restore makes
RESTORED_NAME = "restore_backup_"


def insert(
    connection: sa.Connection, volume: Any, new: NewBackup, user_id: str, **place: Any
) -> str:
    """Write a new backup of a volume, which is being made; return its id."""
    now, backup_id = clock.utcnow(), deadlines.new_uuid()
    values = {
        "id": backup_id,
        "volume_id": volume.id,
        "project_id": volume.project_id,
        "user_id": user_id,
        "name": new.name,
        "description": new.description,
        "status": BackupStatus.CREATING,
        "size_gib": volume.size_gib,
        "meta": new.metadata,
        "container": new.container,
        "availability_zone": new.availability_zone or volume.availability_zone,
        "bootable": volume.bootable,
        "image_metadata": volume.image_metadata,
        "described": {
            "name": volume.name,
            "description": volume.description,
            "meta": volume.meta,
        },
        "data_timestamp": now,
        "created_at": now,
        **place,
    }
    connection.execute(volume_backups.insert(), [values])
    return backup_id


def insert_found(connection: sa.Connection, **values: Any) -> None:
    """Write a backup whose archive was found."""
    now = clock.utcnow()
    times = {"data_timestamp": now, "created_at": now}
    row = {"meta": {}, "status": BackupStatus.AVAILABLE, **times, **values}
    connection.execute(volume_backups.insert(), [row])


def get(connection: sa.Connection, backup_id: str) -> Any | None:
    """Return a backup's row; None: there is no such backup."""
    return connection.execute(sa.select(volume_backups).where(_C.id == backup_id)).first()


def held(connection: sa.Connection, backup_id: str) -> Any | None:
    """Return a backup's row of any project, locked; None: it is deleted."""
    query = sa.select(volume_backups).where(_C.id == backup_id).with_for_update()
    return connection.execute(query).first()


def locked(connection: sa.Connection, backup_id: str, project_id: str | None) -> Any:
    """Return a backup's row, locked. Raises BackupNotFound.

    ``project_id``: whose it must be; None: anybody's.
    """
    row = held(connection, backup_id)
    if row is None or project_id not in (None, row.project_id):
        raise BackupNotFound(f"Backup {backup_id} could not be found.")
    return row


def of_volume(connection: sa.Connection, volume_id: str) -> bool:
    """Return whether there is a backup of a volume that can be restored."""
    mine = (_C.volume_id == volume_id) & (_C.status == BackupStatus.AVAILABLE)
    return connection.execute(sa.select(_C.id).where(mine).limit(1)).first() is not None


def volumes_of(connection: sa.Connection, backup_ids: Collection[str]) -> frozenset[str]:
    """Return the ids of the volumes that these are backups of."""
    if not backup_ids:
        return frozenset()
    query = sa.select(_C.volume_id).where(_C.id.in_(sorted(backup_ids)))
    return frozenset(connection.execute(query).scalars())


def change(connection: sa.Connection, backup_id: str, **values: Any) -> None:
    """Change columns of a backup that is locked."""
    changed = volume_backups.update().where(_C.id == backup_id)
    connection.execute(changed.values(updated_at=clock.utcnow(), **values))


def edit(connection: sa.Connection, row: Any, asked: VolumeEdit) -> None:
    """Change what users say of a backup that is locked."""
    values: Mapping[str, Any] = edited(row, asked, BackupNotFound, "Backup")
    if values:
        change(connection, row.id, **values)


def delete(connection: sa.Connection, backup_id: str) -> None:
    """Forget a backup confirmed absent."""
    connection.execute(volume_backups.delete().where(_C.id == backup_id))


def restored(connection: sa.Connection, backup_id: str | None) -> None:
    """Set a backup to available again after a restore, whether that succeeded or failed."""
    row = None if backup_id is None else held(connection, backup_id)
    if row is not None and row.status == BackupStatus.RESTORING:
        change(connection, row.id, status=BackupStatus.AVAILABLE)


def restored_values(row: Any, volume: Any) -> dict[str, Any]:
    """Return the columns of a volume that a backup brings back, besides its content.

    As in Cinder they are its metadata, its image's, and whether it can be booted from; its name
    and description only if it has no name, or a name that a restore gave it.
    """
    described = row.described or {}
    values = {"image_metadata": row.image_metadata, "bootable": row.bootable}
    if described.get("meta"):
        values["meta"] = described["meta"]
    unnamed = not volume.name or volume.name.startswith(RESTORED_NAME)
    if described.get("name") and unnamed:
        values |= {name: described[name] for name in ("name", "description")}
    return values


def require_uncopied(connection: sa.Connection, row: Any) -> None:
    """Raise Invalid while a volume is made from a locked backup."""
    query = sa.select(_V.id).where(_BEING_MADE, _V.backup_id == row.id)
    if connection.execute(query.limit(1)).first() is not None:
        raise Invalid(f"Invalid backup: Backup {row.id} is busy: a volume is made of it.")

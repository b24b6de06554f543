"""The rows of volumes. To change a row, lock it, or compare its status in the update."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Invalid, NotFound, VolumeNotFound
from common.resources.volumes import RULES, VolumeStatus
from common.rpc import deadlines
from conductor.rpc.volumes.volumes import NewVolume, VolumeEdit
from conductor.store.volumes import transfers
from db.schema import volume_attachments, volume_snapshots, volumes

_C = volumes.c
#: of metadata; one request changes as many
_MOST_ITEMS = 128


def insert(connection: sa.Connection, new: NewVolume, user_id: str, **more: Any) -> str:
    """Write a new volume, which is being created; return its id."""
    volume_id = deadlines.new_uuid()
    values: dict[str, Any] = {
        "id": volume_id,
        "project_id": new.project_id,
        "user_id": user_id,
        "name": new.name,
        "description": new.description,
        "status": VolumeStatus.CREATING,
        "size_gib": new.size_gib,
        "type_id": new.type_id,
        "availability_zone": new.availability_zone,
        "meta": new.metadata,
        "image_id": new.image_id,
        "snapshot_id": new.snapshot_id,
        "source_volume_id": new.source_volume_id,
        "backup_id": new.backup_id,
        "created_at": clock.utcnow(),
        **more,
    }
    connection.execute(volumes.insert(), [values])
    return volume_id


def insert_found(connection: sa.Connection, **values: Any) -> None:
    """Write a volume whose disk was found, with these columns."""
    connection.execute(volumes.insert(), [{"meta": {}, "created_at": clock.utcnow(), **values}])


def again(connection: sa.Connection, row: Any) -> str:
    """Write a new volume, to be created, with the values of a locked one; return its id."""
    new = NewVolume(
        row.project_id,
        row.size_gib,
        row.name,
        row.description,
        row.type_id,
        metadata=row.meta,
        image_id=row.image_id,
        snapshot_id=row.snapshot_id,
        source_volume_id=row.source_volume_id,
        backup_id=row.backup_id,
    )
    return insert(
        connection,
        new,
        row.user_id,
        bootable=row.bootable,
        image_metadata=row.image_metadata,
        status=VolumeStatus.DOWNLOADING if row.image_id else VolumeStatus.CREATING,
    )


def get(connection: sa.Connection, volume_id: str) -> Any | None:
    """Return a volume's row; None: there is no such volume."""
    return connection.execute(sa.select(volumes).where(_C.id == volume_id)).first()


def locked(connection: sa.Connection, volume_id: str, project_id: str | None) -> Any:
    """Return a volume's row, locked. Raises VolumeNotFound.

    ``project_id``: whose it must be; None: anybody's.
    """
    query = sa.select(volumes).where(_C.id == volume_id)
    if project_id is not None:
        query = query.where(_C.project_id == project_id)
    row = connection.execute(query.with_for_update()).first()
    if row is None:
        raise VolumeNotFound(f"Volume {volume_id} could not be found.")
    return row


def held(connection: sa.Connection, volume_id: str) -> Any | None:
    """Return a volume's row of any project, locked; None: it is deleted."""
    query = sa.select(volumes).where(_C.id == volume_id).with_for_update()
    return connection.execute(query).first()


def change(connection: sa.Connection, volume_id: str, **values: Any) -> None:
    """Change columns of a volume that is locked."""
    changed = volumes.update().where(_C.id == volume_id)
    connection.execute(changed.values(updated_at=clock.utcnow(), **values))


def require_status(row: Any, action: str, statuses: Iterable[str] = ()) -> None:
    """Raise Invalid unless an action may begin in a volume's status.

    ``statuses``: in which it may, where the action's rule isn't all.
    """
    may = {str(one) for one in statuses or RULES[action].begins}
    if row.status not in may:
        raise Invalid(
            f"Invalid volume: Volume {row.id} status must be {' or '.join(sorted(may))}, but "
            f"current status is: {row.status}."
        )


def show_begun(connection: sa.Connection, row: Any, action: str) -> None:
    """Set a locked volume to the status of an action that begins."""
    during = RULES[action].during
    if during is not None:
        change(connection, row.id, status=during, previous_status=row.status)


def end(connection: sa.Connection, row: Any, action: str, *, ok: bool, **values: Any) -> bool:
    """Set a locked volume's status at the end of an action; return whether it showed the action.

    Any status but the action's is left unchanged: it was reset, or the volume is being removed.
    """
    rule = RULES[action]
    if row.status != rule.during:
        return False
    after = (rule.done if ok else rule.failed) or row.previous_status or VolumeStatus.AVAILABLE
    change(connection, row.id, status=after, previous_status=None, **values)
    return True


def edit(connection: sa.Connection, row: Any, asked: VolumeEdit) -> None:
    """Change what users can set of a locked volume. Raises NotFound, Invalid."""
    values: dict[str, Any] = edited(row, asked)
    image = dict(row.image_metadata or {})
    if asked.image_metadata is not None:
        image |= asked.image_metadata
        _require_few(image, row.image_metadata or {})
        values["image_metadata"] = image
    if asked.remove_image_metadata is not None:
        if asked.remove_image_metadata not in image:
            raise VolumeNotFound(
                f"Volume has no image metadata with key {asked.remove_image_metadata}.",
                key=asked.remove_image_metadata,
            )
        del image[asked.remove_image_metadata]
        values["image_metadata"] = image
    for name in ("bootable", "readonly"):
        wanted = getattr(asked, name)
        if wanted is not None:
            values[name] = wanted
    if values:
        change(connection, row.id, **values)


def edited(
    row: Any, asked: VolumeEdit, missing: type[NotFound] = VolumeNotFound, noun: str = "Volume"
) -> dict[str, Any]:
    """Return the columns that an edit of a volume or a snapshot changes.

    Raises ``missing`` for metadata that aren't there, Invalid for too many.
    """
    values: dict[str, Any] = {}
    if asked.name is not None:
        values["name"] = asked.name
    if asked.description is not None or asked.clear_description:
        values["description"] = asked.description
    items: Mapping[str, str] = {} if asked.replace_metadata else row.meta
    if asked.metadata is not None:
        values["meta"] = {**items, **asked.metadata}
        _require_few(values["meta"], row.meta)
    if asked.remove_metadata:
        unknown = [key for key in asked.remove_metadata if key not in row.meta]
        if unknown:
            raise missing(f"{noun} has no metadata with key {unknown[0]}.", key=unknown[0])
        left = {key: one for key, one in row.meta.items() if key not in asked.remove_metadata}
        values["meta"] = left
    return values


def _require_few(items: Sized, before: Sized) -> None:
    """Raise Invalid for more metadata than there may be; an image may have brought more."""
    if len(items) > max(_MOST_ITEMS, len(before)):
        raise Invalid(
            f"Invalid input for field/attribute metadata: {len(items)} items are more than "
            f"{_MOST_ITEMS}."
        )


def delete(connection: sa.Connection, volume_id: str) -> None:
    """Forget a volume confirmed absent, and end the offer of its transfer."""
    transfers.end_of(connection, volume_id)
    connection.execute(
        volume_attachments.delete().where(volume_attachments.c.volume_id == volume_id)
    )
    connection.execute(volumes.delete().where(_C.id == volume_id))


def has_snapshots_of_others(connection: sa.Connection, row: Any) -> bool:
    """Return whether other projects have snapshots of a volume: it was transferred without."""
    theirs = volume_snapshots.c
    query = sa.select(theirs.id).where(
        theirs.volume_id == row.id, theirs.project_id != row.project_id
    )
    return connection.execute(query.limit(1)).first() is not None


def has_snapshots(connection: sa.Connection, volume_id: str) -> bool:
    """Return whether a volume has snapshots."""
    mine = volume_snapshots.c.volume_id == volume_id
    return connection.execute(sa.select(volume_snapshots.c.id).where(mine)).first() is not None

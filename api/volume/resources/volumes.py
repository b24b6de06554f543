"""`/volumes`: volumes and their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import queries, schemas, views
from api.volume.call import Call, operation, the
from api.volume.resources.overview import zones
from common.errors import (
    BackupNotFound,
    ImageNotFound,
    Invalid,
    NotFound,
    SnapshotNotFound,
    VolumeNotFound,
)
from conductor.rpc.volumes.volumes import NewVolume, VolumeEdit
from db.reads.volumes import backups, snapshots, volumes
from db.reads.volumes.volumes import Volume

_REFUSED = {
    "consistencygroup_id": "There are no groups of volumes here.",
    "group_id": "There are no groups of volumes here.",
}
_HINT = "local_to_instance"
#: since when volumes are made of backups
_OF_BACKUP = 47
#: since when a volume is deleted by force in its collection, too
_FORCED = 23


def find(call: Call, volume_id: str, rule: str | None = None) -> Volume:
    """Return a volume that the user may do this to. Raises VolumeNotFound, Forbidden."""
    found = call.read(volumes.get, volume_id, call.reach)
    if found is None:
        raise VolumeNotFound(f"Volume {volume_id} could not be found.")
    if rule is not None:
        call.check(rule, {"project_id": found.project_id})
    return found


the_volume = the("volume", find)
_LISTING = queries.Listing(volumes.listing, volumes.count, volumes.SORTABLE, queries.volumes)


class Volumes:
    """Volumes."""

    @operation("volume:get_all")
    def index(self, call: Call) -> Any:
        """List volumes."""
        return _LISTING.answer(call, "volumes", views.brief)

    @operation("volume:get_all")
    def detail(self, call: Call) -> Any:
        """List volumes in detail."""
        return _LISTING.answer(call, "volumes/detail", views.detailed)

    @operation("volume:get_all", since="3.12")
    def summary(self, call: Call) -> Any:
        """Show how many volumes there are, and their size."""
        everybody = call.is_admin and call.query.boolean("all_tenants")
        whose = None if everybody else call.project
        number, gib = call.read(volumes.summary, whose)
        shown: dict[str, Any] = {"total_count": number, "total_size": gib}
        if call.version >= 36:
            shown["metadata"] = call.read(volumes.metadata_values, whose)
        return {"volume-summary": shown}

    @operation(
        "volume:get",
        asks=(
            "volume_extension:volume_tenant_attribute",
            "volume_extension:volume_host_attribute",
            "volume_extension:volume_mig_status_attribute",
        ),
        on=the_volume,
    )
    def show(self, call: Call, volume: Volume) -> Any:
        """Show a volume."""
        return {"volume": views.detailed(call, volume)}

    # As in Cinder a missing image is 400, where other missing sources are 404.
    @operation(
        "volume:create",
        asks=("volume:create_from_image",),
        status=202,
        body=schemas.CREATE,
        errors={ImageNotFound: Invalid},
    )
    def create(self, call: Call) -> Any:
        """Make a volume."""
        asked = call.body["volume"]
        for name, why in _REFUSED.items():
            if asked.get(name) is not None:
                raise Invalid(why)
        if truth(asked.get("multiattach")):
            raise Invalid("Invalid input received: volumes of several servers are not supported.")
        image_id = asked.get("imageRef") or asked.get("image_id")
        if image_id is not None:
            call.check("volume:create_from_image", {"project_id": call.project})
        made = call.conductor.create_volume(call.ctxt, _new(call, asked, image_id))
        return {"volume": views.volume(call, find(call, made))}

    @operation("volume_extension:volume_encryption_metadata", on=the_volume)
    def encryption(self, call: Call, volume: Volume) -> Any:
        """Show how a volume is encrypted: it isn't."""
        return {"encryption_key_id": None}

    @operation("volume:update", body=schemas.UPDATE, on=the_volume)
    def update(self, call: Call, volume: Volume) -> Any:
        """Rename or describe a volume."""
        asked = call.body["volume"]
        call.conductor.edit_volume(call.ctxt, volume.id, edit_of(asked))
        return {"volume": views.volume(call, find(call, volume.id))}

    @operation(asks=("volume:delete", "volume:force_delete"), status=202)
    def delete(self, call: Call, volume_id: str) -> None:
        """Delete a volume."""
        cascade = call.query.boolean("cascade")
        force = call.version >= _FORCED and call.query.boolean("force")
        find(call, volume_id, "volume:force_delete" if force else "volume:delete")
        call.conductor.delete_volume(call.ctxt, volume_id, force=force, cascade=cascade)


def _new(call: Call, asked: Mapping[str, Any], image_id: str | None) -> NewVolume:
    hints = call.body.get("OS-SCH-HNT:scheduler_hints") or call.body.get("scheduler_hints") or {}
    near = hints.get(_HINT)
    if near is not None and not isinstance(near, str):
        raise Invalid(f"Invalid input received: {_HINT} must name one server.")
    return NewVolume(
        call.project,
        _size(call, asked),
        name=trimmed(asked.get("name") or asked.get("display_name")) or "",
        description=trimmed(asked.get("description") or asked.get("display_description")),
        type_id=type_id(call, asked.get("volume_type")),
        availability_zone=_zone(call, asked.get("availability_zone")),
        metadata=asked.get("metadata") or {},
        image_id=image_id,
        snapshot_id=asked.get("snapshot_id"),
        source_volume_id=asked.get("source_volid"),
        backup_id=asked.get("backup_id") if call.version >= _OF_BACKUP else None,
        local_to_server=near,
    )


def _zone(call: Call, asked: str | None) -> str | None:
    """Return the requested zone, if any. Raises Invalid for an unknown zone."""
    if asked and asked not in zones(call):
        raise Invalid(f"Availability zone '{asked}' is invalid.")
    return asked or None


def _size(call: Call, asked: Mapping[str, Any]) -> int:
    """Return the size in the body, else that of the source. Raises Invalid without one."""
    size = asked.get("size")
    if size is None and asked.get("snapshot_id") is not None:
        found = call.read(snapshots.get, asked["snapshot_id"], call.project)
        if found is None:
            raise SnapshotNotFound(f"Snapshot {asked['snapshot_id']} could not be found.")
        return found.size_gib
    if size is None and call.version >= _OF_BACKUP and asked.get("backup_id") is not None:
        saved = call.read(backups.get, asked["backup_id"], call.project)
        if saved is None:
            raise BackupNotFound(f"Backup {asked['backup_id']} could not be found.")
        return saved.size_gib
    if size is None and asked.get("source_volid") is not None:
        return find(call, asked["source_volid"]).size_gib
    if size is None:
        raise Invalid(
            "Invalid input received: Volume size must be an integer and greater than 0 "
            "(current value: None)."
        )
    return int(size)


def type_id(call: Call, asked: str | None) -> str | None:
    """Return the id of the type of this name or id; None: none is named. Raises NotFound."""
    if not asked:
        return None
    for one in call.read(volumes.types, call.reach):
        if asked in (one.id, one.name):
            return one.id
    raise NotFound(f"Volume type {asked} could not be found.")


def edit_of(asked: Mapping[str, Any]) -> VolumeEdit:
    """Return what a PUT changes of a volume's or a snapshot's record."""
    names = [asked[key] for key in ("name", "display_name") if key in asked]
    texts = [asked[key] for key in ("description", "display_description") if key in asked]
    description = trimmed(texts[0]) if texts else None
    metadata = asked.get("metadata")
    return VolumeEdit(
        name=(trimmed(names[0]) or "") if names else None,
        description=description,
        clear_description=bool(texts) and description is None,
        metadata=metadata,
        replace_metadata=metadata is not None,
    )


def trimmed(text: str | None) -> str | None:
    """Return a name or a description without surrounding spaces, as Cinder stores it."""
    return None if text is None else text.strip()


def truth(value: Any) -> bool:
    """Return whether a value of a body means yes."""
    return str(value).lower() in ("true", "1", "t", "on", "y", "yes")

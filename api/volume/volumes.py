"""`/volumes`: volumes, their metadata and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import queries, schemas, views
from api.volume.call import Call, operation
from api.volume.metadata import Metadata, Owner
from common.errors import BackupNotFound, Invalid, NotFound, SnapshotNotFound, VolumeNotFound
from conductor.messages import NewVolume, VolumeEdit
from db.reads import volume_backups, volume_snapshots, volumes
from db.reads.volumes import Volume
from web.guard import Params

_REFUSED = {
    "consistencygroup_id": "There are no groups of volumes here.",
    "group_id": "There are no groups of volumes here.",
}
_HINT = "local_to_instance"
#: since when volumes are made of backups
_OF_BACKUP = 47


def _own(call: Call, _: Params) -> Mapping[str, Any]:
    return {"project_id": call.project}


def find(call: Call, volume_id: str, rule: str | None = None) -> Volume:
    """Return a volume that the user may do this to. Raises VolumeNotFound, Forbidden."""
    found = call.read(volumes.get, volume_id, call.reach)
    if found is None:
        raise VolumeNotFound(f"Volume {volume_id} could not be found.")
    if rule is not None:
        call.check(rule, {"project_id": found.project_id})
    return found


class Volumes:
    """Volumes."""

    @operation("volume:get_all")
    def index(self, call: Call) -> Any:
        """List volumes."""
        return self._listed(call, "volumes", views.brief)

    @operation("volume:get_all")
    def detail(self, call: Call) -> Any:
        """List volumes in detail."""
        return self._listed(call, "volumes/detail", views.volume)

    @staticmethod
    def _listed(call: Call, path: str, view: Any) -> Any:
        page, offset = queries.page(call)
        wanted = queries.volumes(call)
        found = call.read(volumes.listing, wanted, queries.order(call), page, offset)
        answer: dict[str, Any] = {"volumes": [view(call, one) for one in found]}
        if found and len(found) == page.limit:
            answer["volumes_links"] = queries.following(call, path, found[-1].id)
        if call.version >= 45 and call.query.boolean("with_count"):
            answer["count"] = call.read(volumes.count, wanted)
        return answer

    @operation("volume:get_all", since="3.12")
    def summary(self, call: Call) -> Any:
        """Show how many volumes there are, and their size."""
        everybody = call.is_admin and call.query.boolean("all_tenants")
        number, gib = call.read(volumes.summary, None if everybody else call.project)
        shown: dict[str, Any] = {"total_count": number, "total_size": gib}
        if call.version >= 36:
            shown["metadata"] = {}
        return {"volume-summary": shown}

    @operation()
    def show(self, call: Call, volume_id: str) -> Any:
        """Show a volume."""
        return {"volume": views.volume(call, find(call, volume_id, "volume:get"))}

    @operation("volume:create", status=202, body=schemas.CREATE, on=_own)
    def create(self, call: Call) -> Any:
        """Make a volume."""
        asked = call.body["volume"]
        for name, why in _REFUSED.items():
            if asked.get(name) is not None:
                raise Invalid(why)
        if str(asked.get("multiattach", False)).lower() in ("true", "1", "t", "on", "yes"):
            raise Invalid("Invalid input received: volumes of several servers are not supported.")
        image_id = asked.get("imageRef") or asked.get("image_id")
        if image_id is not None:
            call.check("volume:create_from_image", {"project_id": call.project})
        made = call.conductor.create_volume(call.ctxt, _new(call, asked, image_id))
        return {"volume": views.volume(call, find(call, made))}

    @operation(body=schemas.UPDATE)
    def update(self, call: Call, volume_id: str) -> Any:
        """Rename or describe a volume."""
        find(call, volume_id, "volume:update")
        asked = call.body["volume"]
        call.conductor.edit_volume(call.ctxt, volume_id, edit_of(asked))
        return {"volume": views.volume(call, find(call, volume_id))}

    @operation(status=202)
    def delete(self, call: Call, volume_id: str) -> None:
        """Delete a volume."""
        force, cascade = call.query.boolean("force"), call.query.boolean("cascade")
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
        name=asked.get("name") or asked.get("display_name") or "",
        description=asked.get("description") or asked.get("display_description"),
        type_id=_type_id(call, asked.get("volume_type")),
        availability_zone=asked.get("availability_zone") or None,
        metadata=asked.get("metadata") or {},
        image_id=image_id,
        snapshot_id=asked.get("snapshot_id"),
        source_volume_id=asked.get("source_volid"),
        backup_id=_backup_id(call, asked),
        local_to_server=near,
    )


def _size(call: Call, asked: Mapping[str, Any]) -> int:
    """Return the size in the body, else that of the source. Raises Invalid without one."""
    size = asked.get("size")
    if size is None and asked.get("snapshot_id") is not None:
        found = call.read(volume_snapshots.get, asked["snapshot_id"], call.project)
        if found is None:
            raise SnapshotNotFound(f"Snapshot {asked['snapshot_id']} could not be found.")
        return found.size_gib
    if size is None and call.version >= _OF_BACKUP and asked.get("backup_id") is not None:
        saved = call.read(volume_backups.get, asked["backup_id"], call.project)
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


def _backup_id(call: Call, asked: Mapping[str, Any]) -> str | None:
    """Return the backup that the volume is to be made of. Raises BackupNotFound, Invalid."""
    backup_id: str | None = asked.get("backup_id")
    if backup_id is None or call.version < _OF_BACKUP:
        return None
    others = ("imageRef", "image_id", "snapshot_id", "source_volid")
    if any(asked.get(name) is not None for name in others):
        raise Invalid(
            "Invalid input received: a volume is made of one thing: a backup, an image, a "
            "snapshot or a volume."
        )
    return backup_id


def _type_id(call: Call, asked: str | None) -> str | None:
    """Return the id of the type of this name or id. Raises NotFound."""
    if not asked:
        return None
    for one in call.read(volumes.types, None if call.is_admin else call.project):
        if asked in (one.id, one.name):
            return one.id
    raise NotFound(f"Volume type {asked} could not be found.")


def edit_of(asked: Mapping[str, Any]) -> VolumeEdit:
    """Return what a PUT changes of a volume's or a snapshot's record."""
    name = asked.get("name", asked.get("display_name"))
    text = asked.get("description", asked.get("display_description"))
    cleared = text is None and bool({"description", "display_description"} & asked.keys())
    metadata = asked.get("metadata")
    return VolumeEdit(
        name=name,
        description=text,
        clear_description=cleared,
        metadata=metadata,
        replace_metadata=metadata is not None,
    )


def _metadata(call: Call, volume_id: str, rule: str) -> Mapping[str, str]:
    return find(call, volume_id, rule).meta


class Actions:
    """`POST /volumes/{volume_id}/action`."""

    @operation(status=202, body=schemas.EXTEND)
    def extend(self, call: Call, volume_id: str) -> None:
        """Extend a volume; since 3.42 also while a server has it."""
        found = find(call, volume_id, "volume:extend")
        in_use = call.version >= 42
        if in_use and found.attachments:
            call.check("volume:extend_attached_volume", {"project_id": found.project_id})
        size = int(call.body["os-extend"]["new_size"])
        call.conductor.extend_volume(call.ctxt, volume_id, size, in_use=in_use)

    @operation(status=202)
    def reserve(self, call: Call, volume_id: str) -> None:
        """Reserve a volume."""
        find(call, volume_id, "volume_extension:volume_actions:reserve")
        call.conductor.reserve_volume(call.ctxt, volume_id, wanted=True)

    @operation(status=202)
    def unreserve(self, call: Call, volume_id: str) -> None:
        """Reserve a volume no more."""
        find(call, volume_id, "volume_extension:volume_actions:reserve")
        call.conductor.reserve_volume(call.ctxt, volume_id, wanted=False)

    @operation(body=schemas.BOOTABLE)
    def set_bootable(self, call: Call, volume_id: str) -> None:
        """Say whether a volume can be booted from."""
        find(call, volume_id, "volume_extension:volume_actions:set_bootable")
        wanted = truth(call.body["os-set_bootable"]["bootable"])
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(bootable=wanted))

    @operation(status=202, body=schemas.READONLY)
    def update_readonly_flag(self, call: Call, volume_id: str) -> None:
        """Have servers get a volume read-only."""
        found = find(call, volume_id, "volume:update_readonly_flag")
        if found.status != "available":
            raise Invalid(
                f"Invalid volume: Volume {volume_id} status must be available to update readonly "
                f"flag, but current status is: {found.status}."
            )
        wanted = truth(call.body["os-update_readonly_flag"]["readonly"])
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(readonly=wanted))

    @operation(status=202, body=schemas.RESET)
    def reset_status(self, call: Call, volume_id: str) -> None:
        """Say what a volume is."""
        find(call, volume_id, "volume_extension:volume_admin_actions:reset_status")
        status = call.body["os-reset_status"].get("status")
        if status is None:
            raise Invalid("Invalid input received: only the status can be reset here.")
        call.conductor.reset_volume(call.ctxt, volume_id, status)

    @operation(status=202)
    def force_delete(self, call: Call, volume_id: str) -> None:
        """Delete a volume in more states."""
        find(call, volume_id, "volume_extension:volume_admin_actions:force_delete")
        call.conductor.delete_volume(call.ctxt, volume_id, force=True)

    @operation()
    def show_image_metadata(self, call: Call, volume_id: str) -> Any:
        """Show the image metadata of a volume."""
        found = find(call, volume_id, "volume_extension:volume_image_metadata:show")
        return {"metadata": dict(found.image_metadata or {})}

    @operation(body=schemas.SET_IMAGE_METADATA)
    def set_image_metadata(self, call: Call, volume_id: str) -> Any:
        """Add or change image metadata of a volume."""
        find(call, volume_id, "volume_extension:volume_image_metadata:set")
        items = call.body["os-set_image_metadata"]["metadata"]
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(image_metadata=items))
        return {"metadata": dict(find(call, volume_id).image_metadata or {})}

    @operation(body=schemas.UNSET_IMAGE_METADATA)
    def unset_image_metadata(self, call: Call, volume_id: str) -> None:
        """Delete image metadata of a volume."""
        find(call, volume_id, "volume_extension:volume_image_metadata:set")
        key = call.body["os-unset_image_metadata"]["key"]
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(remove_image_metadata=key))

    @operation(status=202, since="3.40", body=schemas.REVERT)
    def revert(self, call: Call, volume_id: str) -> None:
        """Bring a volume back to its last snapshot."""
        find(call, volume_id, "volume:revert_to_snapshot")
        snapshot_id = call.body["revert"]["snapshot_id"]
        call.conductor.revert_volume(call.ctxt, volume_id, snapshot_id)

    @operation()
    def refuse(self, call: Call, volume_id: str) -> None:
        """Refuse an action of the compute API, or one that isn't supported."""
        find(call, volume_id, "volume:get")
        name = next(iter(call.body))
        raise Invalid(
            f"{name} is not done here: servers get and lose volumes through the compute API."
        )


def truth(value: Any) -> bool:
    """Return whether a value of a body means yes."""
    return str(value).lower() in ("true", "1", "t", "on", "y", "yes")


VOLUMES, ACTIONS = Volumes(), Actions()
METADATA = Metadata(
    Owner(
        "Volume",
        "volume",
        _metadata,
        lambda call, record_id, edit: call.conductor.edit_volume(call.ctxt, record_id, edit),
    )
)

ACTION_NAMES: Mapping[str, Any] = {
    "os-extend": ACTIONS.extend,
    "os-reserve": ACTIONS.reserve,
    "os-unreserve": ACTIONS.unreserve,
    "os-set_bootable": ACTIONS.set_bootable,
    "os-update_readonly_flag": ACTIONS.update_readonly_flag,
    "os-reset_status": ACTIONS.reset_status,
    "os-force_delete": ACTIONS.force_delete,
    "os-show_image_metadata": ACTIONS.show_image_metadata,
    "os-set_image_metadata": ACTIONS.set_image_metadata,
    "os-unset_image_metadata": ACTIONS.unset_image_metadata,
    **{
        f"os-{name}": ACTIONS.refuse
        for name in (
            *("attach", "detach", "begin_detaching", "roll_detaching"),
            *("initialize_connection", "terminate_connection", "force_detach"),
            *("migrate_volume", "migrate_volume_completion", "retype", "reimage"),
            *("volume_upload_image", "unmanage"),
        )
    },
    "revert": ACTIONS.revert,
}

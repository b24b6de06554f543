"""`POST /volumes/{volume_id}/action`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from api.volume import schemas, views
from api.volume.call import Call, operation
from api.volume.resources import volumes
from api.volume.resources.volumes import find, the_volume, truth
from common.errors import Invalid, NotFound
from conductor.rpc.volumes.volumes import NewVolumeImage, VolumeEdit
from db.reads.volumes import volumes as reads
from db.reads.volumes.volumes import Volume
from web.guard import Handler, with_guard

#: formats that images of volumes may show; nothing is converted
_DISK_FORMATS = ("raw", "qcow2")
#: from when on the visibility of an image, and whether it is protected, can be said
_VISIBLE_SINCE = 1


class VolumeActions:
    """`POST /volumes/{volume_id}/action`."""

    @operation(
        "volume:extend",
        asks=("volume:extend_attached_volume",),
        status=202,
        body=schemas.EXTEND,
        on=the_volume,
    )
    def extend(self, call: Call, volume: Volume) -> None:
        """Extend a volume; since 3.42 also while it is attached."""
        in_use = call.version >= 42
        if in_use and volume.attachments:
            call.check("volume:extend_attached_volume", {"project_id": volume.project_id})
        size = int(call.body["os-extend"]["new_size"])
        call.conductor.extend_volume(call.ctxt, volume.id, size, in_use=in_use)

    @operation("volume_extension:volume_actions:reserve", status=202, on=the_volume)
    def reserve(self, call: Call, volume: Volume) -> None:
        """Reserve a volume."""
        call.conductor.reserve_volume(call.ctxt, volume.id, wanted=True)

    @operation("volume_extension:volume_actions:reserve", status=202, on=the_volume)
    def unreserve(self, call: Call, volume: Volume) -> None:
        """Reserve a volume no more."""
        call.conductor.reserve_volume(call.ctxt, volume.id, wanted=False)

    @operation(
        "volume_extension:volume_actions:set_bootable", body=schemas.BOOTABLE, on=the_volume
    )
    def set_bootable(self, call: Call, volume: Volume) -> None:
        """Say whether a volume can be booted from."""
        wanted = truth(call.body["os-set_bootable"]["bootable"])
        call.conductor.edit_volume(call.ctxt, volume.id, VolumeEdit(bootable=wanted))

    @operation("volume:update_readonly_flag", status=202, body=schemas.READONLY, on=the_volume)
    def update_readonly_flag(self, call: Call, volume: Volume) -> None:
        """Have servers get a volume read-only."""
        if volume.status != "available":
            raise Invalid(
                f"Invalid volume: Volume {volume.id} status must be available to update readonly "
                f"flag, but current status is: {volume.status}."
            )
        wanted = truth(call.body["os-update_readonly_flag"]["readonly"])
        call.conductor.edit_volume(call.ctxt, volume.id, VolumeEdit(readonly=wanted))

    @operation(
        "volume_extension:volume_admin_actions:reset_status",
        status=202,
        body=schemas.RESET,
        on=the_volume,
    )
    def reset_status(self, call: Call, volume: Volume) -> None:
        """Reset a volume's status; refuse another attach or migration status than the real one."""
        body = call.body["os-reset_status"]
        asked = {name: value.lower() for name, value in body.items() if value}
        if not asked:
            raise Invalid(
                "Must specify 'status', 'attach_status' or 'migration_status' for update."
            )
        is_so = {
            "attach_status": "attached" if volume.attachments else "detached",
            "migration_status": "none",
        }
        for name, value in is_so.items():
            if asked.get(name, value) != value:
                raise Invalid(
                    f"Invalid input received: {name} is {value} and can't be reset here."
                )
        if "status" in asked:
            call.conductor.reset_volume(call.ctxt, volume.id, asked["status"])

    @operation("volume_extension:volume_admin_actions:force_delete", status=202, on=the_volume)
    def force_delete(self, call: Call, volume: Volume) -> None:
        """Delete a volume in more states."""
        call.conductor.delete_volume(call.ctxt, volume.id, force=True)

    @operation("volume_extension:volume_image_metadata:show", on=the_volume)
    def show_image_metadata(self, call: Call, volume: Volume) -> Any:
        """Show the image metadata of a volume."""
        return {"metadata": dict(volume.image_metadata or {})}

    @operation(
        "volume_extension:volume_image_metadata:set",
        body=schemas.SET_IMAGE_METADATA,
        on=the_volume,
    )
    def set_image_metadata(self, call: Call, volume: Volume) -> Any:
        """Add or change image metadata of a volume."""
        items = call.body["os-set_image_metadata"]["metadata"]
        call.conductor.edit_volume(call.ctxt, volume.id, VolumeEdit(image_metadata=items))
        return {"metadata": dict(find(call, volume.id).image_metadata or {})}

    @operation(
        "volume_extension:volume_image_metadata:set",
        body=schemas.UNSET_IMAGE_METADATA,
        on=the_volume,
    )
    def unset_image_metadata(self, call: Call, volume: Volume) -> None:
        """Delete image metadata of a volume."""
        key = call.body["os-unset_image_metadata"]["key"]
        call.conductor.edit_volume(call.ctxt, volume.id, VolumeEdit(remove_image_metadata=key))

    @operation(
        "volume:revert_to_snapshot", status=202, since="3.40", body=schemas.REVERT, on=the_volume
    )
    def revert(self, call: Call, volume: Volume) -> None:
        """Bring a volume back to its last snapshot."""
        snapshot_id = call.body["revert"]["snapshot_id"]
        call.conductor.revert_volume(call.ctxt, volume.id, snapshot_id)

    @operation("volume:retype", status=202, body=schemas.RETYPE, on=the_volume)
    def retype(self, call: Call, volume: Volume) -> None:
        """Give a volume another type; with `on-demand` also one of another storage."""
        asked = call.body["os-retype"]
        type_id = volumes.type_id(call, asked["new_type"])
        if type_id is None:
            raise NotFound("Volume type with name '' could not be found.")
        may_move = asked.get("migration_policy") == "on-demand"
        call.conductor.retype_volume(call.ctxt, volume.id, type_id, may_move=may_move)

    @operation(
        "volume_extension:volume_actions:upload_image",
        asks=("volume_extension:volume_actions:upload_public",),
        status=202,
        body=schemas.UPLOAD_IMAGE,
        on=the_volume,
    )
    def upload_image(self, call: Call, volume: Volume) -> Any:
        """Make an image of a volume."""
        asked = call.body["os-volume_upload_image"]
        image = _image(asked, call.version)
        if image.visibility == "public":
            rule = "volume_extension:volume_actions:upload_public"
            call.check(rule, {"project_id": volume.project_id})
        made = call.conductor.upload_volume(call.ctxt, volume.id, image)
        every = call.read(reads.types, None)
        type_ = next((one for one in every if one.id == volume.type_id), None)
        return {"os-volume_upload_image": views.uploaded(call, volume, type_, image, made)}

    @operation(
        asks=("volume:reimage", "volume:reimage_reserved"),
        status=202,
        since="3.68",
        body=schemas.REIMAGE,
    )
    def reimage(self, call: Call, volume_id: str) -> None:
        """Give a volume that no server has an image, in place of all that was on it."""
        found = find(call, volume_id)
        rule = "volume:reimage_reserved" if found.status == "reserved" else "volume:reimage"
        call.check(rule, {"project_id": found.project_id})
        asked = call.body["os-reimage"]
        reserved = truth(asked.get("reimage_reserved", False))
        image_id = str(uuid.UUID(asked["image_id"]))
        call.conductor.reimage_volume(call.ctxt, volume_id, image_id, reserved=reserved)

    @operation("volume:get", on=the_volume)
    def refuse(self, call: Call, volume: Volume) -> None:
        """Refuse an action that the compute API performs, or that isn't supported."""
        name = next(iter(call.body))
        raise Invalid(f"{name} is not done here: {_INSTEAD[name]}")


def _image(asked: Mapping[str, Any], version: int) -> NewVolumeImage:
    """Return what is asked for. Raises Invalid for a format that no image has here."""
    container, disk = asked.get("container_format", "bare"), asked.get("disk_format", "raw")
    if container != "bare":
        raise Invalid(f"Invalid container format '{container}' for image.")
    if disk not in _DISK_FORMATS:
        raise Invalid(
            f"Invalid disk format '{disk}' for image: images of volumes are "
            f"{' or '.join(_DISK_FORMATS)} here."
        )
    private = version >= _VISIBLE_SINCE
    return NewVolumeImage(
        asked["image_name"],
        disk,
        # Glance's default is what Cinder got before.
        visibility=asked.get("visibility", "private") if private else "shared",
        protected=truth(asked.get("protected", False)),
    )


_BY_COMPUTE = "servers get and lose volumes through the compute API."
_BY_RETYPE = "a retype to another storage's type moves a volume."

#: {refused action: what to use instead}
_INSTEAD: Mapping[str, str] = {
    "os-attach": _BY_COMPUTE,
    "os-detach": _BY_COMPUTE,
    "os-begin_detaching": _BY_COMPUTE,
    "os-roll_detaching": _BY_COMPUTE,
    "os-initialize_connection": _BY_COMPUTE,
    "os-terminate_connection": _BY_COMPUTE,
    "os-force_detach": _BY_COMPUTE,
    "os-migrate_volume": _BY_RETYPE,
    "os-migrate_volume_completion": _BY_RETYPE,
    "os-unmanage": "a volume can't be given up and kept on its storage; delete it.",
}

#: of these, what only administrators may ask for: its policy rule
_ADMINISTRATORS: Mapping[str, str] = {
    "os-force_detach": "volume_extension:volume_admin_actions:force_detach",
    "os-migrate_volume": "volume_extension:volume_admin_actions:migrate_volume",
    "os-migrate_volume_completion": (
        "volume_extension:volume_admin_actions:migrate_volume_completion"
    ),
    "os-unmanage": "volume_extension:volume_unmanage",
}

ACTIONS: Mapping[str, str | Handler] = {
    "os-extend": "extend",
    "os-reserve": "reserve",
    "os-unreserve": "unreserve",
    "os-set_bootable": "set_bootable",
    "os-update_readonly_flag": "update_readonly_flag",
    "os-reset_status": "reset_status",
    "os-force_delete": "force_delete",
    "os-show_image_metadata": "show_image_metadata",
    "os-set_image_metadata": "set_image_metadata",
    "os-unset_image_metadata": "unset_image_metadata",
    **dict.fromkeys(_INSTEAD, "refuse"),
    **{
        name: with_guard(VolumeActions().refuse, rule=rule)
        for name, rule in _ADMINISTRATORS.items()
    },
    "os-retype": "retype",
    "os-volume_upload_image": "upload_image",
    "os-reimage": "reimage",
    "revert": "revert",
}

"""`POST /volumes/{volume_id}/action`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from api.volume import schemas, views
from api.volume.call import Call, operation
from api.volume.resources import volumes
from api.volume.resources.volumes import find, truth
from common.errors import Invalid, NotFound
from conductor.rpc.volumes.volumes import NewVolumeImage, VolumeEdit
from db.reads.volumes import volumes as reads

#: formats that images of volumes may show; nothing is converted
_DISK_FORMATS = ("raw", "qcow2")
#: from when on the visibility of an image, and whether it is protected, can be said
_VISIBLE_SINCE = 1


class Actions:
    """`POST /volumes/{volume_id}/action`."""

    @operation(status=202, body=schemas.EXTEND)
    def extend(self, call: Call, volume_id: str) -> None:
        """Extend a volume; since 3.42 also while it is attached."""
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
        """Reset a volume's status; refuse another attach or migration status than the real one."""
        found = find(call, volume_id, "volume_extension:volume_admin_actions:reset_status")
        body = call.body["os-reset_status"]
        asked = {name: value.lower() for name, value in body.items() if value}
        if not asked:
            raise Invalid(
                "Must specify 'status', 'attach_status' or 'migration_status' for update."
            )
        is_so = {
            "attach_status": "attached" if found.attachments else "detached",
            "migration_status": "none",
        }
        for name, value in is_so.items():
            if asked.get(name, value) != value:
                raise Invalid(
                    f"Invalid input received: {name} is {value} and can't be reset here."
                )
        if "status" in asked:
            call.conductor.reset_volume(call.ctxt, volume_id, asked["status"])

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

    @operation(status=202, body=schemas.RETYPE)
    def retype(self, call: Call, volume_id: str) -> None:
        """Give a volume another type; with `on-demand` also one of another storage."""
        find(call, volume_id, "volume:retype")
        asked = call.body["os-retype"]
        type_id = volumes.type_id(call, asked["new_type"])
        if type_id is None:
            raise NotFound("Volume type with name '' could not be found.")
        may_move = asked.get("migration_policy") == "on-demand"
        call.conductor.retype_volume(call.ctxt, volume_id, type_id, may_move=may_move)

    @operation(status=202, body=schemas.UPLOAD_IMAGE)
    def upload_image(self, call: Call, volume_id: str) -> Any:
        """Make an image of a volume."""
        found = find(call, volume_id, "volume_extension:volume_actions:upload_image")
        asked = call.body["os-volume_upload_image"]
        image = _image(asked, call.version)
        if image.visibility == "public":
            rule = "volume_extension:volume_actions:upload_public"
            call.check(rule, {"project_id": found.project_id})
        made = call.conductor.upload_volume(call.ctxt, volume_id, image)
        every = call.read(reads.types, None)
        type_ = next((one for one in every if one.id == found.type_id), None)
        return {"os-volume_upload_image": views.uploaded(call, found, type_, image, made)}

    @operation(status=202, since="3.68", body=schemas.REIMAGE)
    def reimage(self, call: Call, volume_id: str) -> None:
        """Give a volume that no server has an image, in place of all that was on it."""
        found = find(call, volume_id)
        rule = "volume:reimage_reserved" if found.status == "reserved" else "volume:reimage"
        call.check(rule, {"project_id": found.project_id})
        asked = call.body["os-reimage"]
        reserved = truth(asked.get("reimage_reserved", False))
        image_id = str(uuid.UUID(asked["image_id"]))
        call.conductor.reimage_volume(call.ctxt, volume_id, image_id, reserved=reserved)

    @operation()
    def refuse(self, call: Call, volume_id: str) -> None:
        """Refuse an action that the compute API performs, or that isn't supported."""
        name = next(iter(call.body))
        find(call, volume_id, _ADMINISTRATORS.get(name, "volume:get"))
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

ACTIONS = Actions()

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
    **dict.fromkeys(_INSTEAD, ACTIONS.refuse),
    "os-retype": ACTIONS.retype,
    "os-volume_upload_image": ACTIONS.upload_image,
    "os-reimage": ACTIONS.reimage,
    "revert": ACTIONS.revert,
}

"""`/volumes`: volumes, their metadata and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import queries, schemas, views
from api.volume.call import Call, operation
from common.errors import Invalid, NotFound, VolumeNotFound
from conductor.messages import NewVolume, VolumeEdit
from db.reads import volumes
from db.reads.volumes import Volume
from web.guard import Params

_REFUSED = {
    "backup_id": "There are no backups here.",
    "consistencygroup_id": "There are no groups of volumes here.",
    "group_id": "There are no groups of volumes here.",
}
_HINT = "local_to_instance"


def _own(call: Call, _: Params) -> Mapping[str, Any]:
    return {"project_id": call.project}


def _find(call: Call, volume_id: str, rule: str | None = None) -> Volume:
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
        return {"volume": views.volume(call, _find(call, volume_id, "volume:get"))}

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
        return {"volume": views.volume(call, _find(call, made))}

    @operation(body=schemas.UPDATE)
    def update(self, call: Call, volume_id: str) -> Any:
        """Rename or describe a volume."""
        _find(call, volume_id, "volume:update")
        asked = call.body["volume"]
        call.conductor.edit_volume(call.ctxt, volume_id, _edit(asked))
        return {"volume": views.volume(call, _find(call, volume_id))}

    @operation(status=202)
    def delete(self, call: Call, volume_id: str) -> None:
        """Delete a volume."""
        force = call.query.boolean("force")
        _find(call, volume_id, "volume:force_delete" if force else "volume:delete")
        call.conductor.delete_volume(call.ctxt, volume_id, force=force)


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
        local_to_server=near,
    )


def _size(call: Call, asked: Mapping[str, Any]) -> int:
    """Return the size in the body, else that of the source volume. Raises Invalid without one."""
    size = asked.get("size")
    if size is None and asked.get("source_volid") is not None:
        return _find(call, asked["source_volid"]).size_gib
    if size is None:
        raise Invalid(
            "Invalid input received: Volume size must be an integer and greater than 0 "
            "(current value: None)."
        )
    return int(size)


def _type_id(call: Call, asked: str | None) -> str | None:
    """Return the id of the type of this name or id. Raises NotFound."""
    if not asked:
        return None
    for one in call.read(volumes.types, None if call.is_admin else call.project):
        if asked in (one.id, one.name):
            return one.id
    raise NotFound(f"Volume type {asked} could not be found.")


def _edit(asked: Mapping[str, Any]) -> VolumeEdit:
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


class Metadata:
    """The metadata of a volume."""

    @operation()
    def index(self, call: Call, volume_id: str) -> Any:
        """List them."""
        return {"metadata": _find(call, volume_id, "volume:get_volume_metadata").meta}

    @operation()
    def show(self, call: Call, volume_id: str, key: str) -> Any:
        """Show one."""
        found = _find(call, volume_id, "volume:get_volume_metadata").meta
        if key not in found:
            raise _no_key(volume_id, key)
        return {"meta": {key: found[key]}}

    @operation(body=schemas.METADATA)
    def create(self, call: Call, volume_id: str) -> Any:
        """Add or change some."""
        return self._set(call, volume_id, call.body["metadata"], replace=False)

    @operation(body=schemas.METADATA)
    def update_all(self, call: Call, volume_id: str) -> Any:
        """Replace all."""
        return self._set(call, volume_id, call.body["metadata"], replace=True)

    @operation(body=schemas.META)
    def update(self, call: Call, volume_id: str, key: str) -> Any:
        """Set one."""
        meta = call.body["meta"]
        if key not in meta:
            raise Invalid("Request body and URI mismatch")
        self._set(call, volume_id, meta, replace=False)
        return {"meta": meta}

    @operation()
    def delete(self, call: Call, volume_id: str, key: str) -> None:
        """Delete one."""
        found = _find(call, volume_id, "volume:delete_volume_metadata")
        if key not in found.meta:
            raise _no_key(volume_id, key)
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(remove_metadata=(key,)))

    @staticmethod
    def _set(call: Call, volume_id: str, items: Mapping[str, str], *, replace: bool) -> Any:
        _find(call, volume_id, "volume:update_volume_metadata")
        edit = VolumeEdit(metadata=dict(items), replace_metadata=replace)
        call.conductor.edit_volume(call.ctxt, volume_id, edit)
        return {"metadata": _find(call, volume_id).meta}


def _no_key(volume_id: str, key: str) -> NotFound:
    return NotFound(f"Volume {volume_id} has no metadata with key {key}.")


class Actions:
    """`POST /volumes/{volume_id}/action`."""

    @operation(status=202, body=schemas.EXTEND)
    def extend(self, call: Call, volume_id: str) -> None:
        """Extend a volume; since 3.42 also while a server has it."""
        found = _find(call, volume_id, "volume:extend")
        in_use = call.version >= 42
        if in_use and found.attachments:
            call.check("volume:extend_attached_volume", {"project_id": found.project_id})
        size = int(call.body["os-extend"]["new_size"])
        call.conductor.extend_volume(call.ctxt, volume_id, size, in_use=in_use)

    @operation(status=202)
    def reserve(self, call: Call, volume_id: str) -> None:
        """Reserve a volume."""
        _find(call, volume_id, "volume_extension:volume_actions:reserve")
        call.conductor.reserve_volume(call.ctxt, volume_id, wanted=True)

    @operation(status=202)
    def unreserve(self, call: Call, volume_id: str) -> None:
        """Reserve a volume no more."""
        _find(call, volume_id, "volume_extension:volume_actions:reserve")
        call.conductor.reserve_volume(call.ctxt, volume_id, wanted=False)

    @operation(body=schemas.BOOTABLE)
    def set_bootable(self, call: Call, volume_id: str) -> None:
        """Say whether a volume can be booted from."""
        _find(call, volume_id, "volume_extension:volume_actions:set_bootable")
        wanted = _truth(call.body["os-set_bootable"]["bootable"])
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(bootable=wanted))

    @operation(status=202, body=schemas.READONLY)
    def update_readonly_flag(self, call: Call, volume_id: str) -> None:
        """Have servers get a volume read-only."""
        found = _find(call, volume_id, "volume:update_readonly_flag")
        if found.status != "available":
            raise Invalid(
                f"Invalid volume: Volume {volume_id} status must be available to update readonly "
                f"flag, but current status is: {found.status}."
            )
        wanted = _truth(call.body["os-update_readonly_flag"]["readonly"])
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(readonly=wanted))

    @operation(status=202, body=schemas.RESET)
    def reset_status(self, call: Call, volume_id: str) -> None:
        """Say what a volume is."""
        _find(call, volume_id, "volume_extension:volume_admin_actions:reset_status")
        status = call.body["os-reset_status"].get("status")
        if status is None:
            raise Invalid("Invalid input received: only the status can be reset here.")
        call.conductor.reset_volume(call.ctxt, volume_id, status)

    @operation(status=202)
    def force_delete(self, call: Call, volume_id: str) -> None:
        """Delete a volume in more states."""
        _find(call, volume_id, "volume_extension:volume_admin_actions:force_delete")
        call.conductor.delete_volume(call.ctxt, volume_id, force=True)

    @operation()
    def show_image_metadata(self, call: Call, volume_id: str) -> Any:
        """Show the image metadata of a volume."""
        found = _find(call, volume_id, "volume_extension:volume_image_metadata:show")
        return {"metadata": dict(found.image_metadata or {})}

    @operation(body=schemas.SET_IMAGE_METADATA)
    def set_image_metadata(self, call: Call, volume_id: str) -> Any:
        """Add or change image metadata of a volume."""
        _find(call, volume_id, "volume_extension:volume_image_metadata:set")
        items = call.body["os-set_image_metadata"]["metadata"]
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(image_metadata=items))
        return {"metadata": dict(_find(call, volume_id).image_metadata or {})}

    @operation(body=schemas.UNSET_IMAGE_METADATA)
    def unset_image_metadata(self, call: Call, volume_id: str) -> None:
        """Delete image metadata of a volume."""
        _find(call, volume_id, "volume_extension:volume_image_metadata:set")
        key = call.body["os-unset_image_metadata"]["key"]
        call.conductor.edit_volume(call.ctxt, volume_id, VolumeEdit(remove_image_metadata=key))

    @operation()
    def refuse(self, call: Call, volume_id: str) -> None:
        """Refuse an action of the compute API, or one that isn't supported."""
        _find(call, volume_id, "volume:get")
        name = next(iter(call.body))
        raise Invalid(
            f"{name} is not done here: servers get and lose volumes through the compute API."
        )


def _truth(value: Any) -> bool:
    return str(value).lower() in ("true", "1", "on", "yes")


VOLUMES, METADATA, ACTIONS = Volumes(), Metadata(), Actions()

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
    "revert": ACTIONS.refuse,
}

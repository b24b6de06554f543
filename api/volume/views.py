"""Volumes and types in the API's form; fields and their versions are Cinder's."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from api.volume.call import Call
from common.resources.volumes import AttachStatus, SnapshotStatus, VolumeStatus, device
from conductor.rpc.volumes.volumes import NewVolumeImage
from db.reads.volumes.backups import Backup
from db.reads.volumes.snapshots import Snapshot
from db.reads.volumes.volumes import Attachment, Volume, VolumeType

#: extra specs that everybody sees (cinder/policies/type_extra_specs.py); those of storages, too
_OPEN_SPECS = frozenset({"RESKEY:availability_zones", "multiattach", "replication_enabled"})
_OF_STORAGE = "storage:"


def moment(value: datetime.datetime | None) -> str | None:
    """Return a time as Cinder writes it: UTC with microseconds, and no zone."""
    if value is None:
        return None
    return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def links(call: Call, collection: str, record_id: str) -> list[dict[str, str]]:
    """Return the links of a record."""
    bookmark = call.root.replace("/v3", "", 1) if "/v3" in call.root else call.root
    return [
        {"rel": "self", "href": f"{call.root}/{collection}/{record_id}"},
        {"rel": "bookmark", "href": f"{bookmark}/{collection}/{record_id}"},
    ]


def brief(call: Call, one: Volume) -> dict[str, Any]:
    """Return a volume in a list without details."""
    return {"id": one.id, "name": one.name, "links": links(call, "volumes", one.id)}


def volume(call: Call, one: Volume) -> dict[str, Any]:
    """Return a volume as a create and an update show it."""
    shown: dict[str, Any] = {
        "id": one.id,
        "status": one.status,
        "size": one.size_gib,
        "availability_zone": one.availability_zone,
        "created_at": moment(one.created_at),
        "updated_at": moment(one.updated_at),
        "attachments": [
            # Cinder's of status attached: a client waits for these.
            _attached(call, each)
            for each in one.attachments
            if each.status != AttachStatus.ATTACHING
        ],
        "name": one.name,
        "description": one.description,
        "volume_type": one.type_name,
        "snapshot_id": one.snapshot_id,
        "source_volid": one.source_volume_id,
        "metadata": {**one.meta, **({"readonly": "True"} if one.readonly else {})},
        "links": links(call, "volumes", one.id),
        "user_id": one.user_id,
        "bootable": str(one.bootable).lower(),
        "encrypted": False,
        "replication_status": None,
        "consistencygroup_id": None,
        "multiattach": False,
        **({"migration_status": None} if call.is_admin else {}),
    }
    return shown | _since(call, one)


def detailed(call: Call, one: Volume) -> dict[str, Any]:
    """Return a volume as a GET shows it: also what Cinder's extensions add, each by its policy."""
    shown, mine = volume(call, one), {"project_id": one.project_id}
    if one.image_metadata and call.allows("volume_extension:volume_image_metadata:show", mine):
        shown["volume_image_metadata"] = dict(one.image_metadata)
    if call.allows("volume_extension:volume_tenant_attribute", mine):
        shown["os-vol-tenant-attr:tenant_id"] = one.project_id
    if call.allows("volume_extension:volume_host_attribute"):
        where = None if one.host is None else f"{one.host}@{one.storage}#{one.storage}"
        shown["os-vol-host-attr:host"] = where
    if call.allows("volume_extension:volume_mig_status_attribute"):
        shown["os-vol-mig-status-attr:migstat"] = None
        shown["os-vol-mig-status-attr:name_id"] = None
    return shown


def _since(call: Call, one: Volume) -> dict[str, Any]:
    """Return the fields that later versions brought."""
    later: tuple[tuple[int, str, Any], ...] = (
        (13, "group_id", None),
        (48, "shared_targets", None if call.version >= 69 else False),
        (48, "service_uuid", one.service_uuid),
        (63, "volume_type_id", one.type_id),
        (65, "consumes_quota", True),
    )
    if call.is_admin:
        # There are no clusters of block storage services: /clusters is empty.
        later += ((21, "provider_id", None), (61, "cluster_name", None))
    return {name: value for since, name, value in later if call.version >= since}


def _attached(call: Call, one: Attachment) -> dict[str, Any]:
    return {
        "id": one.volume_id,
        "attachment_id": one.id,
        "volume_id": one.volume_id,
        "server_id": one.server_uuid,
        "host_name": one.host if call.is_admin else None,
        "device": device(one.slot),
        "attached_at": moment(one.attached_at),
    }


def uploaded(
    call: Call, one: Volume, type_: VolumeType | None, image: NewVolumeImage, image_id: str
) -> dict[str, Any]:
    """Return the answer to an upload of a volume as it was before."""
    of_type = None if type_ is None else {**changed_type(type_), "qos_specs_id": None}
    return {
        "id": one.id,
        "updated_at": moment(one.updated_at),
        "status": VolumeStatus.UPLOADING,
        "display_description": one.description,
        "size": one.size_gib,
        "volume_type": of_type,
        "image_id": image_id,
        "container_format": "bare",
        "disk_format": image.disk_format,
        "image_name": image.name,
        "protected": image.protected,
        "visibility": image.visibility,
    }


def attachment(one: Attachment) -> dict[str, Any]:
    """Return an attachment as `/attachments` shows it."""
    return {
        "id": one.id,
        "status": one.status,
        "instance": one.server_uuid,
        "volume_id": one.volume_id,
        "attached_at": moment(one.attached_at) or "",
        "detached_at": "",
        "attach_mode": one.mode,
        "connection_info": {},
    }


def brief_snapshot(_: Call, one: Snapshot) -> dict[str, Any]:
    """Return a snapshot in a list without details."""
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "status": one.status,
        "size": one.size_gib,
        "volume_id": one.volume_id,
        "metadata": dict(one.meta),
        "created_at": moment(one.created_at),
        "updated_at": moment(one.updated_at),
    }


def detailed_snapshot(call: Call, one: Snapshot) -> dict[str, Any]:
    """Return a snapshot as a GET shows it: also what Cinder's extension adds, by its policy."""
    shown = snapshot(call, one)
    if call.allows(
        "volume_extension:extended_snapshot_attributes", {"project_id": one.project_id}
    ):
        done = "0%" if one.status == SnapshotStatus.CREATING else "100%"
        shown["os-extended-snapshot-attributes:progress"] = done
        shown["os-extended-snapshot-attributes:project_id"] = one.project_id
    return shown


def snapshot(call: Call, one: Snapshot) -> dict[str, Any]:
    """Return a snapshot as a create and an update show it."""
    shown = brief_snapshot(call, one)
    later: tuple[tuple[int, str, Any], ...] = (
        (14, "group_snapshot_id", None),
        (41, "user_id", one.user_id),
        (65, "consumes_quota", True),
    )
    return shown | {name: value for since, name, value in later if call.version >= since}


def brief_backup(call: Call, one: Backup) -> dict[str, Any]:
    """Return a backup in a list without details."""
    return {"id": one.id, "name": one.name, "links": links(call, "backups", one.id)}


def backup(call: Call, one: Backup) -> dict[str, Any]:
    """Return a backup with its details."""
    shown: dict[str, Any] = {
        **brief_backup(call, one),
        "status": one.status,
        "size": one.size_gib,
        "object_count": 0,
        "availability_zone": one.availability_zone,
        "container": one.container or one.storage,
        "created_at": moment(one.created_at),
        "updated_at": moment(one.updated_at),
        "description": one.description,
        "fail_reason": one.fail_reason,
        "volume_id": one.volume_id,
        "is_incremental": False,
        "has_dependent_backups": False,
        "snapshot_id": one.snapshot_id,
        "data_timestamp": moment(one.data_timestamp),
    }
    later: tuple[tuple[int, str, Any], ...] = ((43, "metadata", dict(one.meta)),)
    if call.allows("backup:backup_project_attribute"):
        later += (
            (18, "os-backup-project-attr:project_id", one.project_id),
            (56, "user_id", one.user_id),
        )
    return shown | {name: value for since, name, value in later if call.version >= since}


def volume_type(call: Call, one: VolumeType) -> dict[str, Any]:
    """Return a type as a GET shows it: what the user may see of it."""
    shown = new_type(one)
    specs = shown.pop("extra_specs")
    if call.allows("volume_extension:access_types_extra_specs", {"project_id": call.project}):
        shown["extra_specs"] = visible_specs(call, specs)
    if call.allows("volume_extension:access_types_qos_specs_id"):
        shown["qos_specs_id"] = None
    return shown


def new_type(one: VolumeType) -> dict[str, Any]:
    """Return a type as a create shows it."""
    return {**changed_type(one), "os-volume-type-access:is_public": one.is_public}


def changed_type(one: VolumeType) -> dict[str, Any]:
    """Return a type as an update shows it."""
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "is_public": one.is_public,
        "extra_specs": dict(one.extra_specs),
    }


def visible_specs(call: Call, specs: Mapping[str, str]) -> dict[str, str]:
    """Return those extra specs of a type that the user may see."""
    every = call.allows("volume_extension:types_extra_specs:read_sensitive")
    return {
        name: value
        for name, value in specs.items()
        if every or name in _OPEN_SPECS or name.startswith(_OF_STORAGE)
    }

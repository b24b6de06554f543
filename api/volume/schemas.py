"""Schemas of bodies; facts from cinder/api/schemas."""

from __future__ import annotations

from typing import Any

from api.compute.schemas import types

Schema = dict[str, Any]

_SPELLINGS = [*types.BOOLEAN["enum"], "y", "t", "n", "f"]
_BOOLEAN: Schema = {"type": ["boolean", "string"], "enum": _SPELLINGS}
_BOOLEAN_OR_NONE: Schema = {"type": ["boolean", "string", "null"], "enum": [*_SPELLINGS, None]}
_TEXT: Schema = {"type": ["string", "null"], "minLength": 0, "maxLength": 255}
_NAME: Schema = {**_TEXT, "format": "description"}
_UUID_OR_NONE: Schema = {"oneOf": [types.UUID, {"type": "null"}]}
#: Kubernetes' names have a slash
_KEY = "^[a-zA-Z0-9-_:. /]{1,255}$"
_METADATA: Schema = {
    "type": ["object", "null"],
    "patternProperties": {_KEY: {"type": "string", "minLength": 0, "maxLength": 255}},
    "additionalProperties": False,
    "maxProperties": 128,
}
_ITEM: Schema = {**_METADATA, "type": "object", "maxProperties": 1, "minProperties": 1}
_SIZE: Schema = {**types.SIZE, "maximum": 1 << 24}


def _body(name: str, value: Schema, **more: Schema) -> dict[str, Schema | None]:
    return {
        "3.0": {
            "type": "object",
            "properties": {name: value, **more},
            "required": [name],
            "additionalProperties": False,
        }
    }


def _object(required: list[str], *, more: bool = False, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": more,
    }


_HINTS: Schema = {"type": ["object", "null"]}
_CREATE: Schema = {
    "name": _NAME,
    "display_name": _NAME,
    "description": _NAME,
    "display_description": _NAME,
    "size": {"oneOf": [_SIZE, {"type": "null"}]},
    "volume_type": {"type": ["string", "null"], "maxLength": 255},
    "availability_zone": {"type": ["string", "null"], "maxLength": 255},
    "metadata": _METADATA,
    "imageRef": {"type": ["string", "null"], "maxLength": 255},
    "image_id": {"type": ["string", "null"], "maxLength": 255},
    "snapshot_id": _UUID_OR_NONE,
    "source_volid": _UUID_OR_NONE,
    "backup_id": _UUID_OR_NONE,
    "consistencygroup_id": _UUID_OR_NONE,
    "group_id": _UUID_OR_NONE,
    "multiattach": _BOOLEAN_OR_NONE,
}
CREATE = {
    since: _body(
        "volume",
        _object([], more=more, **_CREATE),
        **{"OS-SCH-HNT:scheduler_hints": _HINTS, "scheduler_hints": _HINTS},
    )["3.0"]
    for since, more in (("3.0", True), ("3.53", False))
}
_EDIT: Schema = {
    "name": _NAME,
    "display_name": _NAME,
    "description": _NAME,
    "display_description": _NAME,
}
_UPDATE: Schema = _object([], metadata={**_METADATA, "type": "object"}, **_EDIT)
UPDATE = {
    "3.0": _body("volume", _UPDATE)["3.0"],
    "3.53": _body("volume", {**_UPDATE, "minProperties": 1})["3.0"],
}
CREATE_SNAPSHOT = _body(
    "snapshot",
    _object(
        ["volume_id"],
        volume_id=types.UUID,
        name=_NAME,
        display_name=_NAME,
        description=_NAME,
        force=_BOOLEAN,
        metadata=_METADATA,
    ),
)
UPDATE_SNAPSHOT = _body("snapshot", {**_object([], **_EDIT), "minProperties": 1})
RESET_SNAPSHOT = _body(
    "os-reset_status", _object(["status"], status={"type": "string", "maxLength": 255})
)
_BACKUP: Schema = {
    "volume_id": types.UUID,
    "container": {"type": ["string", "null"], "minLength": 0, "maxLength": 255},
    "description": _NAME,
    "incremental": _BOOLEAN,
    "force": _BOOLEAN,
    "name": _NAME,
    "snapshot_id": _UUID_OR_NONE,
}
_CREATE_BACKUP_43: Schema = {**_BACKUP, "metadata": _METADATA}
_ZONE: Schema = {"type": ["string", "null"], "maxLength": 255}
CREATE_BACKUP = {
    since: _body("backup", _object(["volume_id"], **properties))["3.0"]
    for since, properties in (
        ("3.0", _BACKUP),
        ("3.43", _CREATE_BACKUP_43),
        ("3.51", {**_CREATE_BACKUP_43, "availability_zone": _ZONE}),
    )
}
_EDIT_BACKUP: Schema = {"name": _NAME, "description": _NAME}
UPDATE_BACKUP = {
    since: _body("backup", {**_object([], **properties), "type": ["object", "null"]})["3.0"]
    for since, properties in (
        ("3.9", _EDIT_BACKUP),
        ("3.43", {**_EDIT_BACKUP, "metadata": {**_METADATA, "type": "object"}}),
    )
}
RESTORE = _body(
    "restore",
    {**_object([], name=_NAME, volume_id=_UUID_OR_NONE), "type": ["object", "null"]},
)
RESET_BACKUP = _body(
    "os-reset_status",
    _object(["status"], status={"type": "string", "pattern": "^(?i:available|error)$"}),
)
DEFAULT_TYPE = _body(
    "default_type",
    _object(["volume_type"], volume_type={"type": "string", "minLength": 1, "maxLength": 255}),
)
_BINARY: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
_ENABLE: Schema = {
    **_object(
        [],
        binary=_BINARY,
        service=_BINARY,
        host={
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^[a-zA-Z0-9-._#@:/+]*$",
        },
        cluster={"type": ["string", "null"], "maxLength": 255},
    ),
    "anyOf": [{"required": ["binary"]}, {"required": ["service"]}],
}
ENABLE: dict[str, Schema | None] = {"3.0": _ENABLE}
DISABLE_FOR_A_REASON: dict[str, Schema | None] = {
    "3.0": {**_ENABLE, "properties": {**_ENABLE["properties"], "disabled_reason": _BINARY}}
}
_RECORD_TEXT: Schema = {"type": "string", "minLength": 1}
IMPORT_BACKUP = _body(
    "backup-record",
    _object(
        ["backup_service", "backup_url"],
        backup_service={**_RECORD_TEXT, "maxLength": 255},
        backup_url=_RECORD_TEXT,
    ),
)
REVERT = _body("revert", _object(["snapshot_id"], snapshot_id=types.UUID))
METADATA = _body("metadata", {**_METADATA, "type": "object"})
META = _body("meta", _ITEM)
EXTEND = _body("os-extend", _object(["new_size"], new_size=_SIZE))
REIMAGE = _body(
    "os-reimage",
    _object(["image_id"], image_id=types.UUID, reimage_reserved=_BOOLEAN),
)
_POLICIES = ["on-demand", "never"]
RETYPE = _body(
    "os-retype",
    _object(
        ["new_type"],
        new_type={"type": "string", "maxLength": 255},
        migration_policy={"type": ["string", "null"], "enum": _POLICIES},
    ),
)


def _upload(more: Schema) -> Schema | None:
    formats = ["raw", "vmdk", "vdi", "qcow2", "vhd", "vhdx", "ploop"]
    image = _object(
        ["image_name"],
        image_name={"type": "string", "minLength": 1, "maxLength": 255},
        force=_BOOLEAN,
        disk_format={"type": "string", "enum": formats},
        container_format=_NAME,
    )
    image["properties"] |= more
    return _body("os-volume_upload_image", image)["3.0"]


_VISIBILITY: Schema = {"type": "string", "enum": ["community", "public", "private", "shared"]}
UPLOAD_IMAGE = {
    "3.0": _upload({}),
    "3.1": _upload({"visibility": _VISIBILITY, "protected": _BOOLEAN}),
}
BOOTABLE = _body("os-set_bootable", _object(["bootable"], bootable=_BOOLEAN))
READONLY = _body("os-update_readonly_flag", _object(["readonly"], readonly=_BOOLEAN))
RESET = _body(
    "os-reset_status",
    _object([], status=_TEXT, attach_status=_TEXT, migration_status=_TEXT),
)
_IMAGE_METADATA: Schema = {
    **_METADATA,
    "type": "object",
    "patternProperties": {_KEY: {"type": "string", "maxLength": 65_535}},
}
SET_IMAGE_METADATA = _body(
    "os-set_image_metadata", _object(["metadata"], metadata=_IMAGE_METADATA)
)
UNSET_IMAGE_METADATA = _body(
    "os-unset_image_metadata",
    _object(["key"], key={"type": "string", "minLength": 1, "maxLength": 255}),
)
_SPECS: Schema = {
    "type": ["object", "null"],
    "patternProperties": {_KEY: {"type": ["string", "null"], "maxLength": 255}},
    "additionalProperties": False,
}
_TYPE_NAME: Schema = {"type": "string", "format": "name", "minLength": 1, "maxLength": 255}
TYPE_CREATE = _body(
    "volume_type",
    {
        **_object(["name"], name=_TYPE_NAME, description=_NAME, extra_specs=_SPECS),
        "properties": {
            "name": _TYPE_NAME,
            "description": _NAME,
            "extra_specs": _SPECS,
            "os-volume-type-access:is_public": _BOOLEAN,
        },
    },
)
TYPE_UPDATE = _body(
    "volume_type",
    _object(
        [],
        name={"oneOf": [_TYPE_NAME, {"type": "null"}]},
        description=_NAME,
        is_public=_BOOLEAN,
    ),
)
_SPACELESS_SPECS: Schema = {
    "type": "object",
    "patternProperties": {
        "^[a-zA-Z0-9-_:.]{1,255}$": {"type": ["string", "null"], "maxLength": 255}
    },
    "additionalProperties": False,
}
EXTRA_SPECS = _body("extra_specs", _SPACELESS_SPECS)
EXTRA_SPEC = {"3.0": {**_SPACELESS_SPECS, "minProperties": 1, "maxProperties": 1}}
ADD_ACCESS = _body(
    "addProjectAccess",
    _object(["project"], project={"type": "string", "minLength": 1, "maxLength": 255}),
)
REMOVE_ACCESS = _body(
    "removeProjectAccess",
    _object(["project"], project={"type": "string", "minLength": 1, "maxLength": 255}),
)
_LIMITS: Schema = {
    "^(?!tenant_id$|force$).{1,255}$": {
        "type": ["integer", "string"],
        "pattern": "^-?[0-9]+$",
        "minimum": -1,
        "maximum": types.MAX_INT,
    }
}
QUOTA = _body(
    "quota_set",
    {
        "type": "object",
        "properties": {"tenant_id": {"type": "string", "maxLength": 255}, "force": _BOOLEAN},
        "patternProperties": _LIMITS,
        "additionalProperties": False,
    },
)
QUOTA_CLASS = _body(
    "quota_class_set",
    {"type": "object", "patternProperties": _LIMITS, "additionalProperties": False},
)
ATTACHMENT = _body(
    "attachment",
    _object(
        ["volume_uuid"],
        volume_uuid=types.UUID,
        instance_uuid=types.UUID,
        connector={"type": ["object", "string", "null"]},
        mode={"type": "string", "enum": ["rw", "ro"]},
    ),
)
_TRANSFER = _object(
    ["volume_id"],
    volume_id=types.UUID,
    name={"type": ["string", "null"], "minLength": 1, "maxLength": 255},
)
_TRANSFER_355 = {
    **_TRANSFER,
    "properties": {**_TRANSFER["properties"], "no_snapshots": _BOOLEAN},
}
OLD_TRANSFER = _body("transfer", _TRANSFER)
TRANSFER = {**OLD_TRANSFER, "3.55": _body("transfer", _TRANSFER_355)["3.0"]}
ACCEPT_TRANSFER = _body(
    "accept",
    _object(["auth_key"], auth_key={"type": ["string", "integer"], "maxLength": 255}),
)
CLEANUP = {
    "3.0": {
        **_object(
            [],
            cluster_name={"type": ["string", "null"], "maxLength": 255},
            disabled=_BOOLEAN,
            host={"type": ["string", "null"], "maxLength": 255},
            is_up=_BOOLEAN,
            binary={"enum": ["cinder-volume", "cinder-scheduler"]},
            resource_id=_UUID_OR_NONE,
            resource_type={"type": ["string", "null"], "enum": ["Volume", "Snapshot", None]},
            service_id={"type": ["integer", "string", "null"], "pattern": "^[0-9]*$"},
        ),
        "type": ["object", "null"],
    }
}

"""JSON schemas of what the Image API shows; clients read the property names from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.image.documents import CONTAINER_FORMATS, DISK_FORMATS, VISIBILITIES
from api.image.metadefs import schemas as metadef_schemas

_Schema = dict[str, Any]

_UUID = "^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$"
_STATUSES = [
    "queued",
    "saving",
    "active",
    "killed",
    "deleted",
    "uploading",
    "importing",
    "pending_delete",
    "deactivated",
]


def _field(kind: str | Sequence[str], description: str, **more: Any) -> _Schema:
    return {"type": kind, "description": description, "readOnly": True, **more}


def _open(kind: str | Sequence[str], description: str, **more: Any) -> _Schema:
    """Return a field that users set."""
    return {"type": kind, "description": description, **more}


_MAYBE_TEXT = ("null", "string")
_MAYBE_NUMBER = ("null", "integer")

_IMAGE: Mapping[str, _Schema] = {
    "id": _open("string", "UUID of the image", pattern=_UUID),
    "name": _open(_MAYBE_TEXT, "Name of the image", maxLength=255),
    "status": _field("string", "State of the image", enum=_STATUSES),
    "visibility": _open("string", "Who sees the image", enum=list(VISIBILITIES)),
    "protected": _open("boolean", "Whether the image is safe from deletion"),
    "os_hidden": _open("boolean", "Whether the image is left out of ordinary lists"),
    "checksum": _field(_MAYBE_TEXT, "MD5 of the image's data", maxLength=32),
    "os_hash_algo": _field(_MAYBE_TEXT, "Algorithm of os_hash_value", maxLength=64),
    "os_hash_value": _field(_MAYBE_TEXT, "Digest of the image's data", maxLength=128),
    "owner": _open(_MAYBE_TEXT, "Project that owns the image", maxLength=255),
    "size": _field(_MAYBE_NUMBER, "Size of the file in bytes"),
    "virtual_size": _field(_MAYBE_NUMBER, "Size of the disk in it in bytes"),
    "container_format": _open(
        _MAYBE_TEXT, "Format around the disk", enum=[None, *CONTAINER_FORMATS]
    ),
    "disk_format": _open(_MAYBE_TEXT, "Format of the disk", enum=[None, *DISK_FORMATS]),
    "created_at": _field("string", "When the image was made, or first seen"),
    "updated_at": _field("string", "When the image last changed"),
    "tags": _open("array", "Tags of the image", items={"type": "string", "maxLength": 255}),
    "min_ram": _open("integer", "Memory in MiB that the image needs"),
    "min_disk": _open("integer", "Disk in GiB that the image needs"),
    "self": _field("string", "URL of the image"),
    "file": _field("string", "URL of the image's data"),
    "schema": _field("string", "URL of this schema"),
}
_MEMBER: Mapping[str, _Schema] = {
    "member_id": _field("string", "Project that the image is shared with"),
    "image_id": _field("string", "UUID of the image", pattern=_UUID),
    "created_at": _field("string", "When the image was shared"),
    "updated_at": _field("string", "When the membership last changed"),
    "status": _field("string", "What the member said", enum=["pending", "accepted", "rejected"]),
    "schema": _field("string", "URL of this schema"),
}


def _collection(name: str, item: _Schema) -> _Schema:
    return {
        "name": name,
        "properties": {
            name: {"type": "array", "items": item},
            "first": {"type": "string"},
            "next": {"type": "string"},
            "schema": {"type": "string"},
        },
        "links": [
            {"rel": "first", "href": "{first}"},
            {"rel": "next", "href": "{next}"},
            {"rel": "describedby", "href": "{schema}"},
        ],
    }


_IMAGE_SCHEMA: _Schema = {
    "name": "image",
    "properties": _IMAGE,
    "additionalProperties": {"type": "string"},
    "links": [
        {"rel": "self", "href": "{self}"},
        {"rel": "enclosure", "href": "{file}"},
        {"rel": "describedby", "href": "{schema}"},
    ],
}
_TASK_SCHEMA: _Schema = {
    "name": "task",
    "properties": {
        "id": _field("string", "UUID of the task", pattern=_UUID),
        "type": _field("string", "What the task does", enum=["import", "api_image_import"]),
        "status": _field("string", "State of the task"),
        "input": _field(("null", "object"), "What the task was given"),
        "result": _field(("null", "object"), "What the task made"),
        "owner": _field("string", "Project that owns the task"),
        "message": _field("string", "Why the task failed"),
        "image_id": _field("string", "UUID of its image"),
        "request_id": _field("string", "ID of the request that began it"),
        "user_id": _field("string", "User who began it"),
        "expires_at": _field(_MAYBE_TEXT, "When the task is forgotten"),
        "created_at": _field("string", "When the task was made"),
        "updated_at": _field("string", "When the task last changed"),
        "self": _field("string", "URL of the task"),
        "schema": _field("string", "URL of this schema"),
    },
}
_MEMBER_SCHEMA: _Schema = {"name": "member", "properties": _MEMBER, "additionalProperties": False}

SCHEMAS: Mapping[str, _Schema] = {
    "image": _IMAGE_SCHEMA,
    "images": _collection("images", _IMAGE_SCHEMA),
    "member": _MEMBER_SCHEMA,
    "members": _collection("members", _MEMBER_SCHEMA),
    "task": _TASK_SCHEMA,
    "tasks": _collection("tasks", _TASK_SCHEMA),
    **{f"metadefs/{name}": one for name, one in metadef_schemas.SCHEMAS.items()},
}

"""Views of an image, in Glance's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.clock import iso
from db.reads.images.images import Image, Member

#: length of a hexadecimal digest → its algorithm; MD5 is Glance's `checksum`
_ALGORITHMS: Mapping[int, str] = {64: "sha256", 96: "sha384", 128: "sha512"}
_MD5_LENGTH = 32
_WITHOUT_DATA = frozenset({"queued", "uploading"})


def member(found: Member) -> dict[str, Any]:
    """Return a member of an image."""
    return {
        "member_id": found.member,
        "image_id": found.image_id,
        "status": found.status,
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
        "schema": "/v2/schemas/member",
    }


def image(found: Image) -> dict[str, Any]:
    """Return an image; its properties are added to the base fields, which take precedence."""
    digest = found.checksum or ""
    algorithm = _ALGORITHMS.get(len(digest))
    href = f"/v2/images/{found.id}"
    return {
        **found.properties,
        "visibility": found.visibility,
        # Images without an owner are on the clusters' storages; only operators delete them.
        "protected": found.protected,
        "os_hidden": found.hidden,
        "owner": found.project_id,
        "id": found.id,
        "name": found.name or None,
        "status": found.status,
        "container_format": found.container_format or None,
        "disk_format": found.disk_format or None,
        "size": None if found.status in _WITHOUT_DATA else found.size_bytes,
        "virtual_size": found.virtual_size_bytes,
        "checksum": found.md5 or (digest if len(digest) == _MD5_LENGTH else None),
        "os_hash_algo": algorithm,
        "os_hash_value": digest if algorithm else None,
        "min_disk": found.min_disk_gib,
        "min_ram": found.min_ram_mib,
        "tags": list(found.tags or ()),
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
        "self": href,
        "file": f"{href}/file",
        "schema": "/v2/schemas/image",
    }

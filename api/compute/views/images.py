"""Views of an image, in the form that Nova had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_utils import strutils

from api.compute.call import Call
from common.clock import iso
from db.reads.images.images import Image

_ALTERNATE = "application/vnd.openstack.image"
_STATUSES: Mapping[str, str] = {
    "active": "ACTIVE",
    "queued": "SAVING",
    "saving": "SAVING",
    "deleted": "DELETED",
    "pending_delete": "DELETED",
    "killed": "ERROR",
}
#: how far a copy is, percent
_PROGRESS: Mapping[str, int] = {"queued": 25, "saving": 50, "active": 100}


def brief(call: Call, found: Image) -> dict[str, Any]:
    """Return an image's name and links."""
    alternate = {"rel": "alternate", "type": _ALTERNATE, "href": call.links.image(found.id)}
    links = [*call.links.item("images", found.id), alternate]
    return {"id": found.id, "name": found.name or None, "links": links}


def image(call: Call, found: Image) -> dict[str, Any]:
    """Return all that is shown of an image; sizes in bytes, GiB and MiB."""
    view = brief(call, found) | {
        "minRam": found.min_ram_mib,
        "minDisk": found.min_disk_gib,
        "metadata": found.properties,
        "created": iso(found.created_at),
        "updated": iso(found.updated_at),
        "status": _STATUSES.get(found.status, "UNKNOWN"),
        "progress": _PROGRESS.get(found.status, 0),
        "OS-EXT-IMG-SIZE:size": found.size_bytes,
    }
    server = found.properties.get("instance_uuid")
    if server is not None:
        view["server"] = {"id": server, "links": call.links.item("servers", server)}
    disk_config = found.properties.get("auto_disk_config")
    if disk_config is not None:
        automatic = strutils.bool_from_string(disk_config)
        view["OS-DCF:diskConfig"] = "AUTO" if automatic else "MANUAL"
    return view

"""Is there a way to a disk, and has the storage for root disks room?"""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.hosts import Host


def storage_room(host: Host, request: Requested) -> str | None:
    """Refuse nodes whose storage for root disks is missing, inactive or really full.

    Placement counts what is promised; this looks at what is there, so that a storage filled by
    somebody else is seen as well. Thin storages hold more promises than room: only the image must
    fit now, but at least 1 GiB.
    """
    name = host.facts.vm_storage
    storage = next((item for item in host.facts.storages if item.name == name), None)
    if storage is None:
        return f"storage {name or '(none)'} is not on the node"
    if not storage.active:
        return f"storage {name} is not active"
    needed = request.disk_gib if host.facts.disk_allocation_ratio <= 1.0 else 1
    if storage.available_gib < needed:
        return f"{storage.available_gib} GiB free on {name}, {needed} GiB asked"
    return None


def disk_way(host: Host, request: Requested) -> str | None:
    """Refuse nodes where no way leads from the image to a disk, or none to a config drive.

    Agents tell the ways that a node's Proxmox VE and its storages offer; what one doesn't tell
    is taken to be there.
    """
    if request.image_id is None:
        return None
    ways = host.facts.capabilities
    cloning = ways.get("linked_clone", False) or ways.get("full_clone", False)
    cached = cloning and request.image_id in host.facts.cached_images
    if not ways.get("import_from", True) and not cached:
        version = host.facts.hypervisor_version or "unknown"
        return (
            "no way to a disk: no storage with content 'import', or too old for it "
            f"(version {version}, 8.4 needed), and no template of the image"
        )
    if not ways.get("upload", True):
        return "no storage for config drives (content 'iso')"
    return None

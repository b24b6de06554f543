"""Has the storage for root disks room?"""

from __future__ import annotations

from common.messages import Requested
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

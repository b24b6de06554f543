"""Views of a flavor."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from db.reads.servers.flavors import Flavor

COLLECTION = "flavors"


def basic(call: Call, flavor: Flavor) -> dict[str, Any]:
    """Return a flavor in a short list."""
    view: dict[str, Any] = {
        "id": flavor.flavorid,
        "name": flavor.name,
        "links": call.links.item(COLLECTION, flavor.flavorid),
    }
    if call.version >= 55:
        view["description"] = flavor.description
    return view


def detailed(call: Call, flavor: Flavor) -> dict[str, Any]:
    """Return a flavor with details; sizes in MiB and GiB."""
    view = basic(call, flavor) | {
        "ram": flavor.memory_mib,
        "disk": flavor.disk_gib,
        "swap": flavor.swap_mib or (0 if call.version >= 75 else ""),
        "vcpus": flavor.vcpus,
        "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gib,
        "os-flavor-access:is_public": flavor.is_public,
    }
    if call.version < 102:
        view["OS-FLV-DISABLED:disabled"] = flavor.disabled
        view["rxtx_factor"] = flavor.rxtx_factor or ""
    if call.version >= 61 and call.allows("os-flavor-extra-specs:index"):
        view["extra_specs"] = flavor.extra_specs
    return view

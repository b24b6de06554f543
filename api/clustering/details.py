"""What `show_details` of a node says of its server.

Facts from senlin/profiles/os/nova/server.py.
"""

from __future__ import annotations

from typing import Any

from api.clustering import views
from api.clustering.call import Call
from api.compute.links import Links
from api.compute.views.servers import Sight, View
from db.reads.groups.groups import Member
from db.reads.servers import servers
from db.reads.servers.servers import Extent

_VOLUMES = "os-extended-volumes:volumes_attached"
#: what of a server is shown as the compute API shows it
_KEYS = (
    *("OS-DCF:diskConfig", "OS-EXT-STS:power_state", "accessIPv4", "accessIPv6", "addresses"),
    *("config_drive", "hostId", "key_name", "locked", "metadata", _VOLUMES, "progress", "status"),
    *("updated", "OS-SRV-USG:terminated_at"),
)
_SIGHT = Sight(
    version=9,
    links=Links(""),
    extended=False,
    extra_specs=False,
    operator=False,
    host_status=None,
)


def of(call: Call, node: Member) -> dict[str, Any]:
    """Return what a node's server is. One query; none where it has no server."""
    found = views.details(node)
    server = None
    if node.server_uuid is not None:
        server = call.read(servers.find, node.server_uuid, extent=Extent.DETAIL)
    if server is None:
        return found
    shown = View(_SIGHT, {}).detailed(server)
    groups = [one["name"] for one in shown.get("security_groups", ())]
    return {
        **{name: shown[name] for name in _KEYS if name in shown},
        "attached_volumes": [one["id"] for one in shown[_VOLUMES]],
        "flavor": server.flavor["id"],
        "image": server.image_id or "",
        # A list of several only.
        "security_groups": groups if len(groups) > 1 else "".join(groups),
        **found,
    }

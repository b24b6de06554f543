"""`/os-networks` and `/os-tenant-networks`, before 2.36, and addresses that nobody has.

Facts from nova's networks.py, tenant_networks.py, floating_ips.py and floating_ip_pools.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.former.removed import Removed
from api.compute.schemas import networks as schemas
from common import ids
from common.errors import Invalid, NotFound
from db.reads.networks import networks
from db.reads.networks.networks import Network, Viewer

_UNTIL = "2.35"
#: what networks of nova-network had, and those of the network API show as null
_FIELDS = (
    *("cidr", "netmask", "gateway", "broadcast", "dns1", "dns2", "cidr_v6", "gateway_v6"),
    "netmask_v6",
)
_OF_ADMINISTRATORS = (
    *("created_at", "updated_at", "deleted_at", "deleted", "injected", "bridge", "vlan"),
    *("vpn_public_address", "vpn_public_port", "vpn_private_address", "dhcp_start"),
    *("project_id", "host", "bridge_interface", "multi_host", "priority", "rxtx_base", "mtu"),
    *("dhcp_server", "enable_dhcp", "share_address"),
)


class Networks(Removed):
    """Networks, as clients of old knew them."""

    @operation("os-networks:list", until=_UNTIL)
    def index(self, call: Call) -> Any:
        """List the networks that a server can be put on."""
        return {"networks": [_network(call, one) for one in _all(call)]}

    @operation("os-networks:show", until=_UNTIL)
    def show(self, call: Call, key: str) -> Any:
        """Show a network."""
        return {"network": _network(call, _find(call, key))}


class TenantNetworks(Removed):
    """The same networks, with fewer attributes."""

    @operation("os-tenant-networks:list", until=_UNTIL)
    def index(self, call: Call) -> Any:
        """List the networks that a server can be put on."""
        return {"networks": [_brief(one) for one in _all(call)]}

    @operation("os-tenant-networks:show", until=_UNTIL)
    def show(self, call: Call, key: str) -> Any:
        """Show a network."""
        return {"network": _brief(_find(call, key))}


class FloatingIps:
    """Floating addresses: there are none, and no pool to take one from."""

    @operation("os-floating-ips:list", until=_UNTIL)
    def index(self, call: Call) -> Any:
        """An empty list."""
        return {"floating_ips": []}

    @operation("os-floating-ips:show", until=_UNTIL)
    def show(self, call: Call, key: str) -> NoReturn:
        """Refuse it."""
        _no_address(key)

    @operation("os-floating-ips:create", until=_UNTIL, body=schemas.NEW_FLOATING_IP)
    def create(self, call: Call) -> NoReturn:
        """Refuse it."""
        raise NotFound("Floating IP pool not found: servers have addresses of their networks.")

    @operation("os-floating-ips:delete", until=_UNTIL, status=202)
    def delete(self, call: Call, key: str) -> NoReturn:
        """Refuse it."""
        _no_address(key)

    @operation("os-floating-ip-pools", until=_UNTIL)
    def pools(self, call: Call) -> Any:
        """An empty list."""
        return {"floating_ip_pools": []}


def _no_address(key: str) -> NoReturn:
    if not ids.is_uuid(key):
        raise Invalid(f"Invalid ID received {key}.")
    raise NotFound(f"Floating IP not found for ID {key}")


def _viewer(call: Call) -> Viewer:
    own = call.project
    return Viewer(own, everything=call.is_admin, own=bool(own), shared=True, external=False)


def _all(call: Call) -> list[Network]:
    return call.read(networks.list_networks, {}, viewer=_viewer(call))


def _find(call: Call, network_id: str) -> Network:
    found = call.read(networks.list_networks, {"id": [network_id]}, viewer=_viewer(call))
    if not found:
        raise NotFound("Network not found")
    return found[0]


def _network(call: Call, found: Network) -> Mapping[str, Any]:
    more = _OF_ADMINISTRATORS if call.is_admin else ()
    return {**dict.fromkeys((*_FIELDS, *more)), "id": found.id, "label": found.name}


def _brief(found: Network) -> Mapping[str, Any]:
    # The text is what Nova answers ever since it asks Neutron.
    return {"id": found.id, "cidr": "None", "label": found.name}

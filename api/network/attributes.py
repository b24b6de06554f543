"""The attributes of each kind of record: what is shown, filtered and sorted by."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from api.network.errors import InvalidInput
from common import digits
from common.clock import iso
from db.reads.networks.address_groups import AddressGroup
from db.reads.networks.networks import Network, Port, Share, Subnet
from db.reads.networks.security_groups import DefaultRule, SecurityGroup, SecurityGroupRule


@dataclass(frozen=True)
class Attribute:
    """One attribute: from a field of the record, or the same for all."""

    name: str
    field: str | None = None
    """The record's field, and what a list is filtered and sorted by."""
    constant: Any = None
    """The value where there is no field."""
    show: Callable[[Any], Any] | None = None
    """The value made from the whole record."""
    convert: Callable[[str], Any] = str
    """A filter's value from its text. Raises InvalidInput."""
    listed_by: bool = True
    """Whether lists can be filtered and sorted by it."""
    shown: bool = True
    """Whether it is shown; else lists are filtered by it alone."""
    sorted_by: bool = True
    """False: lists can only be filtered by it."""
    rule: str | None = None
    """The policy rule that allows to see it; None: all may."""

    def value(self, record: Any) -> Any:
        """Return what the record shows."""
        if self.show is not None:
            return self.show(record)
        return self.constant if self.field is None else getattr(record, self.field)


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise InvalidInput(
            f"Invalid input for operation: '{text}' cannot be converted to boolean."
        )
    return _BOOLEANS[text.lower()]


def _integer(text: str) -> int:
    number = digits.integer(text, 2**31)
    if number is None or not 0 <= number < 2**31:
        raise InvalidInput(f"Invalid input for operation: '{text}' is not an integer.")
    return number


def _address(text: str) -> str | None:
    """Return the address in the form it is stored in; an empty text asks for none."""
    if not text:
        return None
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise InvalidInput(
            f"Invalid input for operation: '{text}' is not a valid IP address."
        ) from error


def _maybe(text: str) -> str | None:
    return text or None


def _time(name: str) -> Attribute:
    return Attribute(name, name, show=lambda record: iso(getattr(record, name)), listed_by=False)


def _vif_details(port: Port) -> dict[str, Any]:
    return {"connectivity": "l2", "port_filter": False, "bridge_name": port.bridge}


def _pairs(port: Port) -> list[dict[str, str]]:
    found = (one.partition(" ") for one in port.address_pairs or ())
    return [{"mac_address": mac or port.mac, "ip_address": ip} for ip, _, mac in found]


def _pools(subnet: Subnet) -> list[dict[str, str]]:
    pools = [(subnet.pool_start, subnet.pool_end)] if subnet.pools is None else subnet.pools
    return [{"start": first, "end": last} for first, last in pools]


def _routes(subnet: Subnet) -> list[dict[str, str]]:
    return [{"destination": where, "nexthop": hop} for where, hop in subnet.host_routes or ()]


#: of networks and ports where nothing is filtered, of networks and of ports where it is
UNFILTERED = Attribute("port_security_enabled", constant=False, convert=_boolean)
NETWORK_FILTERED = Attribute("port_security_enabled", "port_security", convert=_boolean)
PORT_FILTERED = Attribute("port_security_enabled", "port_security", convert=_boolean)

REVISION = Attribute("revision_number", "revision", convert=_integer)

_OWNER = (Attribute("tenant_id", "project_id"), Attribute("project_id", "project_id"))
_PLAIN = (
    Attribute("description", "description"),
    Attribute("tags", show=lambda record: list(record.tags or ()), listed_by=False),
)

NETWORK: Sequence[Attribute] = (
    Attribute("id", "id"),
    Attribute("name", "name"),
    *_OWNER,
    *_PLAIN,
    Attribute("admin_state_up", "admin_state_up", convert=_boolean),
    Attribute("is_default", "is_default", convert=_boolean),
    Attribute("mtu", "mtu", convert=_integer),
    Attribute("status", "status"),
    Attribute("subnets", show=lambda n: list(n.subnet_ids), listed_by=False),
    Attribute("shared", "shared", convert=_boolean),
    Attribute("router:external", "external", convert=_boolean),
    UNFILTERED,
    Attribute(
        "availability_zone_hints",
        show=lambda network: list(network.availability_zone_hints or ()),
        listed_by=False,
    ),
    Attribute("provider:network_type", "network_type", rule="get_network:provider:network_type"),
    Attribute(
        "provider:physical_network",
        "physical_network",
        rule="get_network:provider:physical_network",
    ),
    Attribute(
        "provider:segmentation_id",
        "segmentation_id",
        convert=_integer,
        rule="get_network:provider:segmentation_id",
    ),
    _time("created_at"),
    _time("updated_at"),
    REVISION,
)

SUBNET: Sequence[Attribute] = (
    Attribute("id", "id"),
    Attribute("name", "name"),
    *_OWNER,
    *_PLAIN,
    Attribute("network_id", "network_id"),
    Attribute("ip_version", "ip_version", convert=_integer),
    Attribute("cidr", "cidr"),
    Attribute("gateway_ip", "gateway_ip", convert=_address),
    Attribute("allocation_pools", show=_pools, listed_by=False),
    Attribute("dns_nameservers", show=lambda s: list(s.dns_nameservers), listed_by=False),
    Attribute("host_routes", show=_routes, listed_by=False),
    # As it was asked: addresses reach the guest on its config drive, whatever it is.
    Attribute("enable_dhcp", "enable_dhcp", convert=_boolean),
    Attribute("subnetpool_id", constant=None, convert=_maybe),
    Attribute("ipv6_ra_mode", "ipv6_ra_mode", convert=_maybe),
    Attribute("ipv6_address_mode", "ipv6_address_mode", convert=_maybe),
    Attribute("shared", "shared", convert=_boolean, shown=False),
    _time("created_at"),
    _time("updated_at"),
    REVISION,
)

PORT: Sequence[Attribute] = (
    Attribute("id", "id"),
    Attribute("name", "name"),
    Attribute("description", "description"),
    Attribute("tags", show=lambda record: list(record.tags or ()), listed_by=False),
    Attribute("network_id", "network_id"),
    Attribute("tenant_id", "project_id"),
    Attribute("project_id", "project_id"),
    Attribute("mac_address", "mac", convert=str.lower),
    Attribute("admin_state_up", "admin_state_up", convert=_boolean),
    Attribute("status", "status"),
    Attribute("device_id", "server_uuid"),
    Attribute("device_owner", "device_owner"),
    Attribute("fixed_ips", show=lambda port: port.fixed_ips, listed_by=False),
    Attribute(
        "security_groups",
        "security_group",
        show=lambda port: list(port.security_groups),
        sorted_by=False,
    ),
    Attribute("allowed_address_pairs", show=_pairs, listed_by=False),
    UNFILTERED,
    Attribute("binding:vnic_type", constant="normal"),
    Attribute("binding:vif_type", constant="bridge", rule="get_port:binding:vif_type"),
    Attribute(
        "binding:vif_details",
        show=_vif_details,
        listed_by=False,
        rule="get_port:binding:vif_details",
    ),
    Attribute(
        "binding:profile",
        constant={},
        listed_by=False,
        rule="get_port:binding:profile",
    ),
    Attribute(
        "binding:host_id",
        "host",
        show=lambda port: port.host or "",
        convert=_maybe,
        rule="get_port:binding:host_id",
    ),
    _time("created_at"),
    _time("updated_at"),
    REVISION,
)

SECURITY_GROUP_RULE: Sequence[Attribute] = (
    Attribute("id", "id"),
    Attribute("tenant_id", "project_id"),
    Attribute("project_id", "project_id"),
    Attribute("security_group_id", "security_group_id"),
    Attribute("direction", "direction"),
    Attribute("ethertype", "ethertype"),
    Attribute("protocol", "protocol", convert=_maybe),
    Attribute("port_range_min", "port_range_min", convert=_integer),
    Attribute("port_range_max", "port_range_max", convert=_integer),
    Attribute("remote_ip_prefix", "remote_ip_prefix", convert=_maybe),
    Attribute("normalized_cidr", "normalized_cidr", convert=_maybe),
    Attribute("remote_group_id", "remote_group_id", convert=_maybe),
    Attribute("remote_address_group_id", "remote_address_group_id", convert=_maybe),
    Attribute("description", "description"),
    _time("created_at"),
    Attribute("updated_at", show=lambda rule: iso(rule.created_at), listed_by=False),
    # A rule never changes.
    Attribute("revision_number", constant=0, convert=_integer),
)


#: attributes that a default rule lacks, as it belongs to no group
_OF_GROUP = frozenset({"tenant_id", "project_id", "security_group_id", "normalized_cidr"})


def _rules(group: SecurityGroup) -> list[dict[str, Any]]:
    return [{each.name: each.value(rule) for each in SECURITY_GROUP_RULE} for rule in group.rules]


SECURITY_GROUP: Sequence[Attribute] = (
    Attribute("id", "id"),
    Attribute("name", "name"),
    Attribute("description", "description"),
    Attribute("tenant_id", "project_id"),
    Attribute("project_id", "project_id"),
    Attribute("security_group_rules", show=_rules, listed_by=False),
    Attribute("stateful", "stateful", convert=_boolean),
    Attribute("shared", "shared", convert=_boolean),
    Attribute("tags", show=lambda record: list(record.tags or ()), listed_by=False),
    _time("created_at"),
    _time("updated_at"),
    REVISION,
)

DEFAULT_RULE: Sequence[Attribute] = (
    *(each for each in SECURITY_GROUP_RULE if each.name not in _OF_GROUP),
    Attribute("used_in_default_sg", "used_in_default_sg", convert=_boolean),
    Attribute("used_in_non_default_sg", "used_in_non_default_sg", convert=_boolean),
)

ADDRESS_GROUP: Sequence[Attribute] = (
    Attribute("id", "id"),
    Attribute("name", "name"),
    Attribute("description", "description"),
    # Younger than the name tenant: Neutron filters by it, and shows project_id only.
    Attribute("tenant_id", "project_id", shown=False),
    Attribute("project_id", "project_id"),
    Attribute("addresses", show=lambda group: list(group.addresses), listed_by=False),
    _time("created_at"),
    _time("updated_at"),
    REVISION,
)

#: with whom networks are shared
SHARE: Sequence[Attribute] = (
    Attribute("id", "id"),
    *_OWNER,
    Attribute("object_type", "object_type"),
    Attribute("object_id", "object_id"),
    Attribute("target_tenant", "target"),
    Attribute("action", constant="access_as_shared"),
)

_OfGroups = SecurityGroup | SecurityGroupRule | AddressGroup | DefaultRule
Record = Network | Subnet | Port | Share | _OfGroups

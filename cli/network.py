"""``micronova network …``, ``subnet …`` and ``port …``."""

from __future__ import annotations

import argparse
from typing import Any

from cliff.columns import FormattableColumn

from cli import columns
from cli.columns import Column, table
from cli.command import PAGING, Lister, ShowOne, argument, flag, given, one_of, paging


class Pools(FormattableColumn[Any]):
    """A subnet's ranges of addresses: ``10.0.0.2-10.0.0.254``."""

    def human_readable(self) -> str:
        """Return the ranges with commas."""
        return ",".join(f"{p.get('start', '')}-{p.get('end', '')}" for p in self._value or ())


_NETWORK = (
    Column("ID", "id"),
    Column("Name", "name"),
    Column("Subnets", "subnet_ids", columns.Listed),
)
_NETWORK_LONG = (
    Column("ID", "id"),
    Column("Name", "name"),
    Column("Status", "status"),
    Column("Project", "project_id"),
    Column("State", "is_admin_state_up", columns.AdminState),
    Column("Shared", "is_shared"),
    Column("Subnets", "subnet_ids", columns.Listed),
    Column("Network Type", "provider_network_type"),
    Column("Router Type", "is_router_external", columns.RouterType),
    Column("Availability Zones", "availability_zones", columns.Listed),
    Column("Tags", "tags", columns.Listed),
)
_NETWORK_RENAMED = {
    "subnet_ids": "subnets",
    "is_admin_state_up": "admin_state_up",
    "is_router_external": "router:external",
    "is_port_security_enabled": "port_security_enabled",
    "provider_network_type": "provider:network_type",
    "provider_physical_network": "provider:physical_network",
    "provider_segmentation_id": "provider:segmentation_id",
    "is_shared": "shared",
    "ipv4_address_scope_id": "ipv4_address_scope",
    "ipv6_address_scope_id": "ipv6_address_scope",
}
_NETWORK_CELLS = {
    "subnets": columns.Listed,
    "admin_state_up": columns.AdminState,
    "router:external": columns.RouterType,
    "availability_zones": columns.Listed,
    "availability_zone_hints": columns.Listed,
    "tags": columns.Listed,
}
_SUBNET = (
    Column("ID", "id"),
    Column("Name", "name"),
    Column("Network", "network_id"),
    Column("Subnet", "cidr"),
)
_SUBNET_LONG = (
    Column("Project", "project_id"),
    Column("DHCP", "is_dhcp_enabled"),
    Column("Name Servers", "dns_nameservers", columns.Ordered),
    Column("Allocation Pools", "allocation_pools", Pools),
    Column("Host Routes", "host_routes", columns.PairsList),
    Column("IP Version", "ip_version"),
    Column("Gateway", "gateway_ip"),
    Column("Service Types", "service_types", columns.Listed),
    Column("Tags", "tags", columns.Listed),
)
_PORT = (
    Column("ID", "id"),
    Column("Name", "name"),
    Column("MAC Address", "mac_address"),
    Column("Fixed IP Addresses", "fixed_ips", columns.PairsList),
    Column("Status", "status"),
)
_PORT_LONG = (
    Column("Security Groups", "security_group_ids", columns.Listed),
    Column("Device Owner", "device_owner"),
    Column("Tags", "tags", columns.Listed),
)


class ListNetworks(Lister):
    """List networks."""

    arguments = (
        argument("--name", metavar="<name>", help="Only networks of this name"),
        argument("--status", metavar="<status>", help="Only networks of this status"),
        flag("--long", help="List additional fields"),
        *PAGING,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each network."""
        query = given(parsed_args, "name", "status") | paging(parsed_args)
        networks = self.cloud.network.networks(**query)
        return table(_NETWORK_LONG if parsed_args.long else _NETWORK, networks)


class ShowNetwork(ShowOne):
    """Show a network."""

    arguments = (argument("network", metavar="<network>", help="Network (name or ID)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the network."""
        network = self.cloud.find("network", parsed_args.network)
        return columns.shown(
            network.to_dict(headers=False), _NETWORK_RENAMED, ("tenant_id",), _NETWORK_CELLS
        )


class ListSubnets(Lister):
    """List subnets."""

    arguments = (
        argument("--network", metavar="<network>", help="Only of this network (name or ID)"),
        argument("--name", metavar="<name>", help="Only subnets of this name"),
        flag("--long", help="List additional fields"),
        *PAGING,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each subnet."""
        query = given(parsed_args, "name") | paging(parsed_args)
        network = self.cloud.network
        if parsed_args.network:
            query["network_id"] = self.cloud.find("network", parsed_args.network).id
        return table(
            _SUBNET + (_SUBNET_LONG if parsed_args.long else ()), network.subnets(**query)
        )


class ListPorts(Lister):
    """List ports."""

    arguments = (
        argument("--network", metavar="<network>", help="Only of this network (name or ID)"),
        one_of(
            argument("--server", metavar="<server>", help="Only of this server (name or ID)"),
            argument("--device-id", metavar="<device-id>", help="Only of this device"),
        ),
        argument("--mac-address", metavar="<mac-address>", help="Only with this address"),
        argument("--name", metavar="<name>", help="Only ports of this name"),
        argument("--status", metavar="<status>", help="Only ports of this status"),
        flag("--long", help="List additional fields"),
        *PAGING,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each port."""
        query = given(parsed_args, "device_id", "mac_address", "name", "status")
        query |= paging(parsed_args)
        network = self.cloud.network
        if parsed_args.server:
            query["device_id"] = self.cloud.find("server", parsed_args.server).id
        if parsed_args.network:
            query["network_id"] = self.cloud.find("network", parsed_args.network).id
        return table(_PORT + (_PORT_LONG if parsed_args.long else ()), network.ports(**query))

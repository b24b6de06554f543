"""Calls about networks and subnets of projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class NewNetwork:
    """A network to be made; without type, bridge and VLAN tag these are chosen."""

    project_id: str
    name: str = ""
    description: str = ""
    mtu: int | None = None
    shared: bool = False
    """Whether all projects may use it."""
    external: bool = False
    network_type: str | None = None
    """``vlan`` or ``flat``."""
    bridge: str | None = None
    vlan: int | None = None
    availability_zone_hints: tuple[str, ...] = ()
    is_default: bool = False
    """Whether it is the external network that is meant where none is named."""
    admin_state_up: bool = True
    port_security: bool | None = None
    """Whether new ports on it are filtered; None: they are."""


@dataclass(frozen=True)
class NewShare:
    """What another project, or all (``*``), may use (Neutron's RBAC policy)."""

    project_id: str
    """Who shares it."""
    object_id: str
    target: str
    object_type: str = "network"
    """``network``, ``security_group`` or ``address_group``."""


@dataclass(frozen=True)
class NewSubnet:
    """A subnet to be made."""

    project_id: str
    network_id: str
    name: str = ""
    description: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """What ``conductor.store.networks.subnet_rules`` reads: ``cidr``, ``ip_version`` and what is
    given of ``gateway_ip``, ``allocation_pools`` ([first, last] each), ``host_routes``
    ([destination, next hop] each), ``dns_nameservers``, ``enable_dhcp`` and the IPv6 modes."""


class NetworkRpc(Protocol):
    """Networks and subnets of projects."""

    def create_networks(self, ctxt: RequestContext, networks: list[NewNetwork]) -> list[str]:
        """Make all of these networks or none; return their ids.

        Raises Invalid (no such bridge or tag), Conflict (in use, none left, over quota).
        """

    def update_network(self, ctxt: RequestContext, network_id: str, asked: dict[str, Any]) -> None:
        """Change name, description, mtu, shared or external of a network.

        Raises NetworkNotFound, Conflict (a cluster says what it is, others use it), Invalid.
        """

    def delete_network(self, ctxt: RequestContext, network_id: str) -> None:
        """Delete a network with its subnets. Raises NetworkNotFound, Conflict (it has ports)."""

    def create_subnets(self, ctxt: RequestContext, subnets: list[NewSubnet]) -> list[str]:
        """Make all of these subnets or none; return their ids.

        Raises NetworkNotFound, Invalid, Conflict.
        """

    def update_subnet(self, ctxt: RequestContext, subnet_id: str, asked: dict[str, Any]) -> None:
        """Change a subnet's attributes. Raises SubnetNotFound, Invalid, Conflict."""

    def delete_subnet(self, ctxt: RequestContext, subnet_id: str) -> None:
        """Delete a subnet. Raises SubnetNotFound, Conflict (a port has an address of it)."""

    def create_network_shares(self, ctxt: RequestContext, shares: list[NewShare]) -> list[str]:
        """Have projects use networks, all of these or none; return the shares' ids.

        Raises NetworkNotFound, Conflict (there is one, over quota).
        """

    def update_network_share(self, ctxt: RequestContext, share_id: str, target: str) -> None:
        """Have another project use a network instead. Raises NotFound, Conflict (see below)."""

    def delete_network_share(self, ctxt: RequestContext, share_id: str) -> None:
        """Delete a share. Raises NotFound, Conflict (who would lose access has ports there)."""

    def auto_network(self, ctxt: RequestContext, project_id: str, *, dry_run: bool) -> str:
        """Return the id of the network of a project's servers whose users name none.

        It is made if need be; with ``dry_run`` the id is empty then. Raises Conflict.
        """

    def delete_auto_network(self, ctxt: RequestContext, project_id: str) -> None:
        """Delete the network that was made so, if there is one. Raises Conflict (it has ports)."""

"""Calls about ports of users, and about the tags of Neutron's resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class FixedIp:
    """An address that a port is to have; None: any of the subnet's, of any subnet."""

    subnet_id: str | None = None
    ip_address: str | None = None


@dataclass(frozen=True)
class NewPort:
    """A port that a user makes."""

    project_id: str
    network_id: str
    name: str = ""
    description: str = ""
    mac: str | None = None
    """None: a random one."""
    fixed_ips: tuple[FixedIp, ...] | None = None
    """None: any address, where the network has a subnet; one at the most."""
    any_address: bool = False
    """Whether the address may be outside of the pool."""
    tags: tuple[str, ...] = ()
    security_groups: tuple[str, ...] | None = None
    """None: the project's default one."""
    port_security: bool | None = None
    """False: it is in no group, and nothing of it is filtered; None: as its network says."""
    address_pairs: tuple[AddressPair, ...] = ()
    admin_state_up: bool = True
    binding_host: str = ""
    """The host of the server to come; empty: any."""


@dataclass(frozen=True)
class AddressPair:
    """An address, or a range, that a port may use besides its own."""

    ip_address: str
    mac_address: str | None = None
    """None: the port's; another is an administrator's to allow."""


@dataclass(frozen=True)
class TagChange:
    """Changes to the tags of a network, subnet, port or security group."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    replace: bool = False
    """Whether all tags that are not in ``add`` are removed."""


@dataclass(frozen=True)
class PortChange:
    """Changes to a port; None: unchanged."""

    name: str | None = None
    description: str | None = None
    mac: str | None = None
    fixed_ips: tuple[FixedIp, ...] | None = None
    any_address: bool = False
    security_groups: tuple[str, ...] | None = None
    port_security: bool | None = None
    address_pairs: tuple[AddressPair, ...] | None = None
    admin_state_up: bool | None = None
    binding_host: str | None = None
    """Empty: any."""


class PortRpc(Protocol):
    """Ports of users, and the tags of Neutron's resources."""

    def create_ports(self, ctxt: RequestContext, ports: list[NewPort]) -> list[str]:
        """Make all of these ports or none; return their ids.

        Raises NetworkNotFound, SubnetNotFound, NotFound (a security group), Conflict (a MAC or an
        address in use, none left; pairs without port security), Invalid (no port of the network
        can have the address; groups without port security), Forbidden (it is outside of the
        pools). ``type`` in the details is Neutron's.
        """

    def update_port(self, ctxt: RequestContext, port_id: str, asked: PortChange) -> None:
        """Change a port. Raises as ``create_ports``, PortNotFound, Conflict (it is in use)."""

    def delete_port(self, ctxt: RequestContext, port_id: str) -> None:
        """Delete a port; a server's port is detached first, as an operation of the server.

        Raises PortNotFound, ServerLocked, ServerStateConflict, Conflict (the agent is down).
        """

    def change_tags(
        self, ctxt: RequestContext, kind: str, record_id: str, change: TagChange
    ) -> list[str]:
        """Change the tags of a ``network``, ``subnet``, ``port`` or ``security_group``.

        Return what it has then.

        Raises NotFound (the record, or a tag that is to be removed), Invalid over 50 tags.
        """

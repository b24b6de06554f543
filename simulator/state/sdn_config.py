"""Software-defined networks, as configured and as applied. Plain data."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field


@dataclass
class Zone:
    """A zone; an empty list of nodes means all."""

    zone: str
    type: str
    nodes: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    def on(self, node: str) -> bool:
        """Return whether the zone is on a node."""
        return not self.nodes or node in self.nodes


@dataclass
class Vnet:
    """A virtual network of a zone: a bridge of this name on the zone's nodes."""

    vnet: str
    zone: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class Subnet:
    """A range of addresses of a vnet; its ID is the zone's name and the range, with a dash."""

    subnet: str
    vnet: str
    zone: str
    cidr: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class Ip:
    """An address that the IPAM has assigned."""

    ip: str
    zone: str
    vnet: str
    subnet: str
    mac: str = ""
    vmid: str = ""


@dataclass
class Sdn:
    """The configured and the running networks."""

    zones: dict[str, Zone] = field(default_factory=dict)
    vnets: dict[str, Vnet] = field(default_factory=dict)
    subnets: dict[str, Subnet] = field(default_factory=dict)
    running_zones: dict[str, Zone] = field(default_factory=dict)
    running_vnets: dict[str, Vnet] = field(default_factory=dict)
    running_subnets: dict[str, Subnet] = field(default_factory=dict)
    ips: dict[str, Ip] = field(default_factory=dict)
    version: int = 0
    lock: str = ""

    def apply(self) -> None:
        """Make the configured networks the running ones."""
        self.running_zones = copy.deepcopy(self.zones)
        self.running_vnets = copy.deepcopy(self.vnets)
        self.running_subnets = copy.deepcopy(self.subnets)
        self.version += 1

    def roll_back(self) -> None:
        """Make the running networks the configured ones."""
        self.zones = copy.deepcopy(self.running_zones)
        self.vnets = copy.deepcopy(self.running_vnets)
        self.subnets = copy.deepcopy(self.running_subnets)

    @property
    def pending(self) -> bool:
        """Return whether the configured networks differ from the running ones."""
        return (self.zones, self.vnets, self.subnets) != (
            self.running_zones,
            self.running_vnets,
            self.running_subnets,
        )

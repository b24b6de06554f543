"""Software-defined networks: zones and vnets, as configured and as applied. Plain data."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field


@dataclass
class Zone:
    """A zone; no nodes mean all."""

    zone: str
    type: str
    nodes: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    def on(self, node: str) -> bool:
        """Tell whether it is for a node."""
        return not self.nodes or node in self.nodes


@dataclass
class Vnet:
    """A virtual network of a zone: a bridge of this name on the zone's nodes."""

    vnet: str
    zone: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class Sdn:
    """What is configured, and what of it runs since it was applied last."""

    zones: dict[str, Zone] = field(default_factory=dict)
    vnets: dict[str, Vnet] = field(default_factory=dict)
    running_zones: dict[str, Zone] = field(default_factory=dict)
    running_vnets: dict[str, Vnet] = field(default_factory=dict)
    version: int = 0

    def apply(self) -> None:
        """What is configured is what shall run."""
        self.running_zones = copy.deepcopy(self.zones)
        self.running_vnets = copy.deepcopy(self.vnets)
        self.version += 1

"""What the doctor reads of a cluster, frozen; everything may be missing, with the reason."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compute.hypervisor.proxmox.observe.snapshot import Node, Snapshot, Unread
from compute.hypervisor.proxmox.settings import ClusterSettings

#: one object of Proxmox VE's answers
Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """One configured address of a cluster's API."""

    name: str
    problem: str = ""
    """Why it can't be used; empty: it answers."""
    line: str = "systemctl status pveproxy"
    """What mends it, or shows what it is."""
    trusted: bool = True
    """Whether its certificate is trusted; meaningless if the endpoint can't be reached."""
    certificate_ends: datetime.datetime | None = None
    members: frozenset[str] = frozenset()
    """The nodes of the cluster that answers there."""


@dataclass(frozen=True)
class NodeFacts:
    """What is read of one node that is online."""

    offset_seconds: float | None = None
    """How far its clock is ahead of this machine's; None: it can't be read."""
    networks: Sequence[Answer] = ()
    services: Sequence[Answer] = ()


@dataclass(frozen=True)
class TemplateFacts:
    """One template of the band that is named as an image's."""

    vmid: int
    node: str
    config: Answer
    lost: str = ""
    """Its root disk, if the storage hasn't got it."""


@dataclass(frozen=True)
class Facts:
    """One cluster."""

    settings: ClusterSettings
    endpoints: tuple[Endpoint, ...]
    snapshot: Snapshot
    granted: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    options: Answer = field(default_factory=dict)
    storages: Sequence[Answer] = ()
    """As configured: also those of other nodes."""
    ha_status: Sequence[Answer] = ()
    ha_resources: Sequence[Answer] = ()
    ha_rules: Sequence[Answer] = ()
    token: Answer = field(default_factory=dict)
    user: Answer = field(default_factory=dict)
    """The token's."""
    acl: Sequence[Answer] = ()
    """What the token may change of the access lists: all of them, if it is mighty."""
    firewall: Answer = field(default_factory=dict)
    devices: Sequence[Answer] = ()
    vnets: Sequence[Answer] = ()
    details: Mapping[str, NodeFacts] = field(default_factory=dict)
    """By node; not of all if there are many."""
    templates: Sequence[TemplateFacts] = ()
    """Not all if there are many."""
    unread: Mapping[str, Unread] = field(default_factory=dict)
    """Paths that the checks alone read, and could not."""

    @property
    def name(self) -> str:
        """The cluster's name in the configuration."""
        return self.settings.name

    @property
    def ours(self) -> list[Node]:
        """The nodes whose agents this configuration has, by name."""
        nodes = sorted(self.snapshot.nodes.values(), key=lambda node: node.name)
        hosts = self.settings.hosts
        return [node for node in nodes if not hosts or node.name in hosts]

    @property
    def online(self) -> list[Node]:
        """Those of them that are online."""
        return [node for node in self.ours if node.online]

"""The snapshot of a cluster: nodes, storages and VMs of one cluster, frozen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.messages.facts import ImageFacts, VnetFacts
from common.messages.inventory import SeenVnet
from compute.hypervisor.port import GuestUse
from compute.hypervisor.proxmox.ha.rules import NodeAffinity
from compute.hypervisor.proxmox.vmconfig import storage_types
from compute.hypervisor.proxmox.vmconfig.storage_types import LVM


@dataclass(frozen=True)
class Unread:
    """Why a call failed."""

    why: str
    """Without a full stop at its end."""
    remedy: str | None = None
    """What grants a privilege that the token lacks."""


@dataclass(frozen=True)
class Storage:
    """One storage as seen by one node; sizes in bytes."""

    name: str
    type: str
    shared: bool
    active: bool
    total: int
    used: int
    content: frozenset[str]
    chained: bool = False
    """Whether snapshots there are volumes of their own (`snapshot-as-volume-chain`)."""

    @property
    def kind(self) -> str:
        """The type for the table of what storages can do."""
        return storage_types.LVM_CHAIN if self.chained and self.type == LVM else self.type

    @property
    def available(self) -> int:
        """Free bytes."""
        return max(0, self.total - self.used)


@dataclass(frozen=True)
class NodeDetail:
    """Facts of a node that change rarely."""

    version: str = ""
    cpu_model: str = ""
    cpu_vendor: str = ""
    cpu_sockets: int = 1
    cpu_cores: int = 1
    cpu_flags: tuple[str, ...] = ()
    architecture: str = "x86_64"
    machine_version: str = ""
    bridges: tuple[str, ...] = ()
    bridge_vlans: Mapping[str, str] = field(default_factory=dict)
    """See ``bridges.restricted``."""


@dataclass(frozen=True)
class Node:
    """One node; sizes in bytes."""

    name: str
    online: bool
    maintenance: bool = False
    """Whether the HA manager moves guests off it."""
    ip: str = ""
    cpus: int = 0
    load: float = 0.0
    memory: int = 0
    memory_used: int = 0
    uptime: int = 0
    storages: Mapping[str, Storage] = field(default_factory=dict)
    detail: NodeDetail = NodeDetail()
    images: tuple[ImageFacts, ...] = ()
    unready: Mapping[str, str] = field(default_factory=dict)
    """Vnets of the cluster that are missing here, and why."""
    zones: tuple[str, ...] = ()
    """Its SDN zones; that of plain bridges is not among them."""
    pinned: Mapping[int, str] = field(default_factory=dict)
    """VMIDs that can't be migrated off it, and why; see ``pins``."""


@dataclass(frozen=True)
class ListedVm:
    """One VM, template or container as the cluster lists it."""

    vmid: int
    kind: str
    """``qemu`` or ``lxc``."""
    node: str
    name: str
    running: bool
    template: bool
    status: str
    lock: str = ""
    """The lock that its configuration carries."""


@dataclass(frozen=True)
class Snapshot:
    """One snapshot of a cluster."""

    quorate: bool
    nodes: Mapping[str, Node]
    vms: Mapping[int, ListedVm]
    version: str = ""
    devices: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node → mapping of PCI devices → how many devices it has there."""
    rules: tuple[NodeAffinity, ...] = ()
    silent: frozenset[str] = frozenset()
    """Nodes that could not be reached through another one when they were asked last."""
    missing: tuple[str, ...] = ()
    """Privileges that the token lacks, each as path and privilege."""
    vnets: tuple[VnetFacts, ...] = ()
    """All that are applied."""
    grant: str | None = None
    """The commands that grant them; None: none is missing."""
    project_vnets: tuple[SeenVnet, ...] | None = None
    """Vnets that say that they are networks'; None: they can't be read."""

    unfiltered: str = ""
    """Why the ports of VMs can't be filtered; empty: they can."""
    unread: Mapping[str, Unread] = field(default_factory=dict)
    """Paths that could not be read the last time: what they say is as it was read before."""

    guests: tuple[GuestUse, ...] = ()
    """What VMs use, where [metrics] guests asks for it."""

    def unread_of(self, node: str) -> dict[str, Unread]:
        """Return the ends of a node's paths that could not be read."""
        beginning = f"nodes/{node}/"
        return {
            path.removeprefix(beginning): one
            for path, one in self.unread.items()
            if path.startswith(beginning)
        }

    def storage(self, node: str, name: str) -> Storage | None:
        """Return a storage of a node, or None."""
        found = self.nodes.get(node)
        return None if found is None else found.storages.get(name)

    def storages(self, node: str, content: str) -> Iterator[Storage]:
        """Yield active storages of a node that take a content type."""
        found = self.nodes.get(node)
        for storage in found.storages.values() if found else ():
            if storage.active and content in storage.content:
                yield storage


def quorate(status: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether ``/cluster/status`` has quorum. A single node needs none."""
    clusters = [one for one in status if one.get("type") == "cluster"]
    return all(bool(one.get("quorate")) for one in clusters)


def chosen(node: Node, configured: str | None, content: str) -> Storage | None:
    """Return the configured storage, or the largest active one with the content, shared first.

    Volumes on a node's local storage pin their VM to it: a CD prevents every migration, and a
    local disk has to be copied.
    """
    if configured is not None:
        return node.storages.get(configured)
    fitting = [one for one in node.storages.values() if one.active and content in one.content]
    return max(fitting, key=lambda one: (one.shared, one.total, one.name), default=None)

"""What all operations on one cluster share: client, watchers, queues, the last snapshot."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.tasks import Tasks
from compute.hypervisor.proxmox.cluster.restarts import Restarts
from compute.hypervisor.proxmox.cluster.storage_queue import Key, StorageQueue
from compute.hypervisor.proxmox.cluster.strangers import Strangers
from compute.hypervisor.proxmox.cluster.stray_volumes import StrayVolumes
from compute.hypervisor.proxmox.ha.affinity import Affinity
from compute.hypervisor.proxmox.observe.snapshot import Node, Snapshot, Storage
from compute.hypervisor.proxmox.settings import ClusterSettings


@dataclass(frozen=True)
class Listed:
    """A VMID in the cluster's list."""

    node: str
    kind: str
    """``qemu`` or ``lxc``: both share one range of ids."""


class Shared:
    """The shared state of one cluster; thread-safe."""

    def __init__(
        self,
        settings: ClusterSettings,
        client: Client | None = None,
        stray_volumes: StrayVolumes | None = None,
    ) -> None:
        self.settings = settings
        self.client = client or Client(settings)
        self.tasks = Tasks(
            self.client, blind_seconds=settings.blind_seconds, cluster=settings.name
        )
        self.restarts = Restarts(settings.restart_lock_seconds)
        self.affinity = Affinity(self.client)
        self.stray_volumes = stray_volumes or StrayVolumes(self.client)
        self.storage_queue = StorageQueue(
            settings.local_storage_slots,
            settings.shared_storage_slots,
            settings.most_storage_slots,
            cluster=settings.name,
        )
        self.strangers = Strangers()
        self._snapshot: Snapshot | None = None
        self.refresh: Callable[[], Snapshot] | None = None
        """Refreshes the snapshot; for who comes before there is one."""
        self.relist: Callable[[str, str], None] = lambda node, storage: None
        """Refreshes the snapshot, and lists the images of a node's storage, due or not."""

        self.relist_networks: Callable[[], None] = lambda: None
        """Refreshes the snapshot, and lists the networks of all nodes, due or not."""
        self.snapshot_ways: dict[tuple[Key, str], str] = {}
        """By storage key and type: how snapshots of disks there are made, once Proxmox VE was
        asked."""
        self.applying = threading.Lock()
        """Held while the SDN configuration is applied."""

    @property
    def snapshot(self) -> Snapshot:
        """The last snapshot, at most an observation interval old. Raises HypervisorError."""
        if self._snapshot is None:
            if self.refresh is None:
                raise HypervisorError(
                    Category.NODE_UNHEALTHY, f"Cluster {self.settings.name} was not seen yet."
                )
            self._snapshot = self.refresh()
        return self._snapshot

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def node(self, name: str) -> Node:
        """Return a node of the snapshot. Raises HypervisorError (node_unhealthy) for others."""
        node = self.snapshot.nodes.get(name)
        if node is None:
            raise HypervisorError(
                Category.NODE_UNHEALTHY, f"Cluster {self.settings.name} has no node {name}."
            )
        return node

    def listed(self, vmid: int) -> Listed | None:
        """Return where the cluster lists a VMID now, or None. One call, which lists all VMs."""
        for one in self.client.get("cluster/resources", type="vm"):
            if one.get("vmid") == vmid:
                return Listed(str(one["node"]), str(one.get("type")))
        return None

    def available(self, node: str, storage: Storage, needed: int, *, now: bool = False) -> int:
        """Return the free bytes of a storage: as last seen, or read now where that is too little.

        Somebody may have freed space since, and what follows would be a refusal. ``now``: in any
        case.
        """
        if storage.available >= needed and not now:
            return storage.available
        try:
            status = self.client.get(f"nodes/{node}/storage/{storage.name}/status")
        except HypervisorError:
            return storage.available
        return int(status.get("avail", storage.available))

    def storage_key(self, node: str, storage: str) -> Key:
        """Return the key of the lock that an allocation on this storage takes."""
        seen = self.snapshot.storage(node, storage)
        return (None if seen is not None and seen.shared else node, storage)

"""What all operations on one cluster share: client, watchers, queues, the last survey."""

from __future__ import annotations

from compute.hypervisor.proxmox.admission import Admission, Key
from compute.hypervisor.proxmox.client import Client
from compute.hypervisor.proxmox.settings import Cluster
from compute.hypervisor.proxmox.tasks import Tasks
from compute.hypervisor.proxmox.view import Snapshot


class Shared:
    """One per cluster; safe for any number of threads."""

    def __init__(self, settings: Cluster, client: Client | None = None) -> None:
        self.settings = settings
        self.client = client or Client(settings)
        self.tasks = Tasks(self.client)
        self.admission = Admission(settings.local_storage_slots, settings.shared_storage_slots)
        self.snapshot: Snapshot | None = None
        """The last survey, at most an observation interval old; None before the first."""

    def where(self, vmid: int) -> str | None:
        """The node on which the cluster lists a VMID now, or None."""
        for one in self.client.get("cluster/resources", type="vm"):
            if one.get("vmid") == vmid:
                return str(one["node"])
        return None

    def storage_key(self, node: str, storage: str) -> Key:
        """The lock that an allocation on this storage takes."""
        seen = self.snapshot.storage(node, storage) if self.snapshot else None
        return (None if seen is not None and seen.shared else node, storage)

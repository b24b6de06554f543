"""Refuses what a storage has no room for, before anything is made."""

from __future__ import annotations

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.observe.snapshot import Storage


def require(
    shared: Shared, node: str, storage: Storage, needed: int, *, now: bool = False
) -> None:
    """Raise HypervisorError (storage_full) unless a storage has this many bytes left.

    ``now``: it is read, also if there was enough when it was last seen.
    """
    available = shared.available(node, storage, needed, now=now)
    if available < needed:
        raise HypervisorError(
            Category.STORAGE_FULL,
            f"Storage {storage.name} has {available >> 20} MiB free, "
            f"{needed >> 20} MiB are needed.",
        )

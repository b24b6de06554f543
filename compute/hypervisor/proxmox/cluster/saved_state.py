"""Whether a VM's memory can be saved to disk, and where to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.vmconfig import disks, hardware

#: what Proxmox VE adds to twice the memory for the state of devices
DEVICES_BYTES = 500 << 20

_PCI = re.compile(r"hostpci[0-9]+")
_SHARE = re.compile(r"virtiofs[0-9]+")


def refusal(
    shared: Shared, node: str, config: Mapping[str, Any], status: Mapping[str, Any]
) -> str | None:
    """Return why a VM's memory can't be saved to disk; None: nothing is known against it."""
    if (status.get("ha") or {}).get("managed"):
        return "It is under high availability, which Proxmox VE does not suspend to disk."
    if any(_PCI.fullmatch(key) for key in config):
        return "It has a PCI device, whose state can't be saved."
    if any(_SHARE.fullmatch(key) for key in config):
        return "It has a shared folder (virtiofs), whose state can't be saved."
    found = storage(shared, node, config)
    needed = needed_bytes(config)
    if found is None:
        return None
    available = shared.available(node, found, needed)
    if available >= needed:
        return None
    return (
        f"Its memory needs {needed >> 20} MiB on storage {found.name}, "
        f"which has {available >> 20} MiB left."
    )


def needed_bytes(config: Mapping[str, Any]) -> int:
    """Return the size of the volume that Proxmox VE makes for the memory."""
    return 2 * (hardware.memory_mib(config) << 20) + DEVICES_BYTES


def storage(shared: Shared, node: str, config: Mapping[str, Any]) -> Storage | None:
    """Return the storage for the memory, as Proxmox VE chooses it; None: it isn't known.

    The configured storage, else a shared storage with a disk of the VM, else a local one with a
    disk of the VM.
    """
    configured = config.get("vmstatestorage")
    names = disks.storages(config) if configured is None else [str(configured)]
    if not names:
        return None
    try:
        seen = shared.snapshot
    except HypervisorError:
        return None
    found = (seen.storage(node, name) for name in names)
    return max((one for one in found if one is not None), key=lambda one: one.shared, default=None)

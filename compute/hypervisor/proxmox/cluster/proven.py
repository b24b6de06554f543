"""The configuration of a VM that is proven the server's, for what is no operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.vmconfig import marks
from compute.hypervisor.proxmox.vmconfig.marks import Owner


def config(shared: Shared, node: str, vmid: int, server_uuid: str) -> Mapping[str, Any]:
    """Return the VM's configuration. Raises HypervisorError unless the VM is the server's."""
    found: Mapping[str, Any] = shared.client.get(f"nodes/{node}/qemu/{vmid}/config")
    if marks.owner(found, marks.server_mark(server_uuid, "")) is not Owner.OURS:
        raise HypervisorError(Category.PROTECTED, f"VM {vmid} on {node} isn't the server's.")
    return found

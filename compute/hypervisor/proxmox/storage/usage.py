"""Finds the user of a volume: Proxmox VE deletes volumes even if a configuration names them.

A snapshot that names a volume is a user as well. Without the volume it can neither be rolled back
to nor deleted, and its VM remains locked; LVM-thin, btrfs and RBD remove the volume's own
snapshots with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Vm

#: how Proxmox VE calls what isn't a snapshot in the list of them
NOW = "current"


def user(
    vm: Vm, storage: str, volid: str, node: str | None = None, but: int | None = None
) -> str | None:
    """Return a VM with access to its storage that names the volume, or None.

    ``but``: the VMID of a VM that may name it. Named in a snapshot counts.

    One call per VM: only for leftovers, which are rare. Raises ApiError if a VM can't be read,
    since then it isn't known.
    """
    where = node or vm.node
    client = vm.shared.client
    shared = vm.shared.storage_key(where, storage)[0] is None
    for one in client.get("cluster/resources", type="vm"):
        if int(one["vmid"]) == but or (not shared and one["node"] != where):
            continue
        kind = "lxc" if one.get("type") == "lxc" else "qemu"
        path = f"nodes/{one['node']}/{kind}/{one['vmid']}"
        try:
            config = client.get(f"{path}/config")
            named = _named(config, volid)
            snapshot = (
                "" if named or not config.get("parent") else in_snapshot(client, path, volid)
            )
        except ApiError as error:
            if error.no_config:
                continue  # deleted or moved since the list, with its disks
            raise
        if named or snapshot:
            return f"{snapshot and f'snapshot {snapshot} of '}VM {one['vmid']} on {one['node']}"
    return None


def in_snapshot(client: Client, path: str, volid: str) -> str:
    """Return the snapshot of a VM that names the volume; empty: none does.

    ``path``: of the VM. One call, and one more for each snapshot. Raises ApiError.
    """
    for one in client.get(f"{path}/snapshot"):
        name = str(one["name"])
        if name != NOW and _named(client.get(f"{path}/snapshot/{name}/config"), volid):
            return name
    return ""


def _named(config: Mapping[str, Any], volid: str) -> bool:
    """Return whether a configuration names the volume, but as unused.

    Another VM's volume is left there as unused by a deleted snapshot or a roll-back; that VM can
    neither use nor free it.
    """
    return any(
        _names(str(value), volid) for key, value in config.items() if not key.startswith("unused")
    )


def _names(value: str, volid: str) -> bool:
    """Return whether an option's value is that volume: ``local:1/vm-1-disk-0.raw,size=1G``."""
    return volid in value.split(",") or f"file={volid}" in value.split(",")

"""The volumes that VMs name, in their configurations and in their snapshots, for the audit.

Both are in configurations only, so what isn't read shows none.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any

from common.messages.inventory import SeenReference, SeenSnapshot
from common.resources.volumes import snapshot_named
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.settings import ClusterSettings
from compute.hypervisor.proxmox.storage import usage
from compute.hypervisor.proxmox.vmconfig import volumes

#: snapshots of one VM whose configurations are read: the last ones
SNAPSHOTS = 5
#: the VMID in a volume's name
_OWNER = re.compile(r"(?:vm|base)-([0-9]+)-")


def references(
    settings: ClusterSettings, config: Mapping[str, Any], vmid: int, node: str
) -> Iterator[SeenReference]:
    """Yield the volumes of other VMs of the band that a configuration names. Pure."""
    for option, volid in volumes.foreign(config, vmid):
        owner = _OWNER.search(volid)
        if owner is not None and settings.in_band(int(owner[1])):
            yield SeenReference(vmid, node, option, volid)


def snapshots(
    client: Client,
    settings: ClusterSettings,
    config: Mapping[str, Any],
    vmid: int,
    node: str,
) -> tuple[SeenSnapshot, ...] | None:
    """Return the snapshots of a VM, with the volumes of others in them; None: they can't be read.

    No call for a VM that has none, and at most one more than ``SNAPSHOTS`` for another one.
    """
    if not config.get("parent"):
        return ()
    path = f"nodes/{node}/qemu/{vmid}/snapshot"
    try:
        listed = [one for one in client.get(path) if one["name"] != usage.NOW]
        listed.sort(key=lambda one: int(one.get("snaptime") or 0))
        last = {str(one["name"]) for one in listed[-SNAPSHOTS:]}
        return tuple(_seen(client, settings, path, one, last, vmid, node) for one in listed)
    except ApiError:
        return None


def _seen(
    client: Client,
    settings: ClusterSettings,
    path: str,
    one: Mapping[str, Any],
    last: set[str],
    vmid: int,
    node: str,
) -> SeenSnapshot:
    name = str(one["name"])
    kept: Mapping[str, Any] = client.get(f"{path}/{name}/config") if name in last else {}
    named = tuple(sorted(found.volid for found in references(settings, kept, vmid, node)))
    taken = one.get("snaptime")
    return SeenSnapshot(
        name,
        not one.get("snapstate"),
        named,
        *snapshot_named(str(one.get("description") or "")),
        datetime.datetime.fromtimestamp(int(taken), datetime.UTC) if taken else None,
    )

"""What pins a VM to its node: linked clones and config drives on local storage. Pure.

Proxmox VE migrates neither, online or offline: ``can't migrate '…' as it's a clone of '…'`` and
``local cdrom image``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from compute.hypervisor.proxmox.vmconfig.hardware import CONFIG_DRIVE_NAME

#: content types whose volumes may keep a VM where it is
CONTENTS = frozenset({"images", "iso"})
_DRIVE = re.compile(CONFIG_DRIVE_NAME)
#: a clone names its base before itself where the storage keeps it bound
_CLONE = re.compile(r"[:/]base-\d+-[^/]+/")


def of_storage(storage: str, listed: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """VMID → what of it is on a node's own storage and can't leave it."""
    found: dict[int, str] = {}
    for one in listed:
        volid = str(one.get("volid", ""))
        if one.get("content") == "iso":
            drive = _DRIVE.search(volid)
            if drive:
                found.setdefault(
                    int(drive["vmid"]), f"its config drive is on the node's own storage {storage}"
                )
        elif _CLONE.search(volid) and one.get("vmid"):
            found[int(one["vmid"])] = (
                f"its disk is a linked clone on the node's own storage {storage}"
            )
    return found

"""What pins a VM to its node: linked clones and config drives on local storage. Pure.

Proxmox VE migrates neither, online or offline: ``can't migrate '…' as it's a clone of '…'`` and
``local cdrom image``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from common.messages.facts import CONFIG_DRIVE
from compute.hypervisor.proxmox.vmconfig.hardware import CONFIG_DRIVE_NAME

#: content types whose volumes may pin a VM to its node
CONTENTS = frozenset({"images", "iso"})
_DRIVE = re.compile(CONFIG_DRIVE_NAME)
#: a clone's volume id begins with its base if the storage links the two
_CLONE = re.compile(r"[:/]base-[0-9]+-[^/]+/")


def of_storage(storage: str, listed: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return VMID → which of its volumes pin it to the node."""
    found: dict[int, str] = {}
    for one in listed:
        volid = str(one.get("volid", ""))
        if one.get("content") == "iso":
            drive = _DRIVE.search(volid)
            if drive:
                found.setdefault(
                    int(drive["vmid"]), f"{CONFIG_DRIVE} is on the node's own storage {storage}"
                )
        elif _CLONE.search(volid) and one.get("vmid"):
            found[int(one["vmid"])] = (
                f"its disk is a linked clone on the node's own storage {storage}"
            )
    return found

"""Volumes in configurations: how a holder has its disk, and how a server names one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from compute.hypervisor.proxmox.vmconfig import disks

#: where a holder has its disk while an operation needs it plugged
PLUGGED = disks.ROOT_DISK
_UNUSED = re.compile(r"unused[0-9]+")
SCSI = re.compile(r"scsi[0-9]+")
_DISK = re.compile(r"(?:scsi|virtio|ide|sata|efidisk|tpmstate|unused)[0-9]+")


def volid(value: Any) -> str:
    """Return the volume in an option's value, empty without one."""
    first = str(value or "").split(",", 1)[0].removeprefix("file=")
    return first if ":" in first else ""


def held(config: Mapping[str, Any], vmid: int) -> str | None:
    """Return the volume that a holder has, plugged or parked; None: it has none."""
    own = disks.volumes(config, vmid)
    plugged = volid(config.get(PLUGGED))
    if plugged in own:
        return plugged
    return min(own, default=None)


def parked(config: Mapping[str, Any], vmid: int) -> bool:
    """Return whether a holder's disk rests: not plugged, and protected."""
    disk = held(config, vmid)
    if disk is None or str(config.get("protection", "0")) != "1":
        return False
    return _slots(config, disk) == {
        slot for slot in _slots(config, disk) if _UNUSED.fullmatch(slot)
    }


def slot_of(config: Mapping[str, Any], disk: str) -> str | None:
    """Return where a configuration names a volume, plugged; None: it doesn't."""
    found = (slot for slot in sorted(_slots(config, disk)) if not _UNUSED.fullmatch(slot))
    return next(found, None)


def names(config: Mapping[str, Any], disk: str) -> bool:
    """Return whether a configuration, or what is to become of it, names a volume."""
    return bool(_slots(config, disk))


def foreign(config: Mapping[str, Any], vmid: int) -> Iterator[tuple[str, str]]:
    """Yield (option, volume) of the disks that bear another VM's id.

    Unused ones don't count: a deleted snapshot or a roll-back leaves them, and the VM neither has
    nor can free them.
    """
    own = disks.volumes(config, vmid)
    for key, value in sorted(config.items()):
        plugged = _DISK.fullmatch(key) and not _UNUSED.fullmatch(key)
        disk = volid(value) if plugged else ""
        if disk and disk not in own and "media=cdrom" not in str(value):
            yield key, disk


def reference(disk: str, serial: str, *, readonly: bool = False) -> str:
    """Return the value with which a server's VM names a volume.

    A backup or a replication of the VM leaves it out: restored, it would be the server's own.
    """
    options = [disk, "backup=0", "replicate=0", "discard=on", "iothread=1"]
    if readonly:
        options.append("ro=1")
    return ",".join([*options, f"serial={quote(serial)}"])


def _slots(config: Mapping[str, Any], disk: str) -> set[str]:
    return {key for key, value in config.items() if _DISK.fullmatch(key) and volid(value) == disk}

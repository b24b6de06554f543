"""A flavor's size in Proxmox VE's options, and what of them differs from a configuration. Pure.

Firmware, machine type and disks are not among them: they never change during a server's life.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from common.messages.commands import Size
from common.resources.local_disks import EPHEMERAL_SLOTS, SWAP_SLOT, LocalDisk
from compute.hypervisor.proxmox.vmconfig import disks, guest

#: every local disk that a server may have
LOCAL_DISKS = tuple(LocalDisk(slot, 0) for slot in (*EPHEMERAL_SLOTS, SWAP_SLOT))
#: the options that a size decides
_SIZED = re.compile(r"cores|sockets|memory|cpu|numa[0-9]*|watchdog|hostpci[0-9]+")
#: those that every size does; of the others only those that the former size decided otherwise, as
#: an operator may have given the VM more
_ALWAYS = frozenset({"cores", "sockets", "memory"})
_NETWORK = re.compile(r"net[0-9]+")


def changes(
    config: Mapping[str, Any],
    size: Size,
    former: Size,
    image_properties: Mapping[str, str],
    cpu_type: str,
) -> dict[str, str]:
    """Return the parameters that give a configuration this size; empty: none are missing."""
    wanted = _wanted(config, size, image_properties, cpu_type)
    before = _wanted(config, former, image_properties, cpu_type)
    decided = _ALWAYS | {
        name for name in wanted.keys() | before.keys() if wanted.get(name) != before.get(name)
    }
    values = {
        name: wanted[name]
        for name in sorted(decided & wanted.keys())
        if _parts(config.get(name)) != _parts(wanted[name])
    }
    gone = sorted((decided & config.keys()) - wanted.keys())
    return values | ({"delete": ",".join(gone)} if gone else {})


def _wanted(
    config: Mapping[str, Any], size: Size, image_properties: Mapping[str, str], cpu_type: str
) -> dict[str, str]:
    has = guest.of_size(size.vcpus, size.memory_mib, size.extra_specs, image_properties)
    options = guest.options(has, cpu_type) | {"memory": size.memory_mib}
    _, queues = guest.network(has, size.vcpus)
    rate, limits = guest.rate(has), guest.disk_limits(has)
    networks = {name: str(value) for name, value in config.items() if _NETWORK.fullmatch(name)}
    return {name: str(value) for name, value in options.items() if _SIZED.fullmatch(name)} | {
        **{name: _network(value, queues, rate) for name, value in networks.items()},
        **{name: disks.bounded(value, limits) for name, value in own_disks(config).items()},
    }


def own_disks(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the disks that a flavor bounds: the root disk, unless it is a volume, and the local
    ones beside it."""
    slots = (disks.root_slot(config), *(disks.local_slot(one) for one in LOCAL_DISKS))
    values = {slot: str(config[slot]) for slot in slots if slot in config}
    return {name: value for name, value in values.items() if not _is_volume(value)}


def _is_volume(value: str) -> bool:
    """Return whether a disk is a volume: its serial number is the volume's ID."""
    return disks.serial(value) not in {"", *(one.serial for one in LOCAL_DISKS)}


def _network(value: str, queues: int, rate: str) -> str:
    parts = [part for part in value.split(",") if not part.startswith(("queues=", "rate="))]
    if queues and value.startswith("virtio="):
        parts.append(f"queues={queues}")
    if rate:
        parts.append(f"rate={rate}")
    return ",".join(parts)


def _parts(value: Any) -> frozenset[str] | None:
    """Return the parts of a value, whose order means nothing."""
    return None if value is None else frozenset(str(value).split(","))

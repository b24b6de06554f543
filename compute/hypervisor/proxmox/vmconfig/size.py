"""A flavor's size in Proxmox VE's options, and what of them differs from a configuration. Pure.

Firmware, machine type and disks are not among them: a server keeps those for its life.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from common.messages.commands import Size
from compute.hypervisor.proxmox.vmconfig import guest

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
    """Return the parameters that give a configuration this size; empty: it has it."""
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
    networks = {name: str(value) for name, value in config.items() if _NETWORK.fullmatch(name)}
    return {name: str(value) for name, value in options.items() if _SIZED.fullmatch(name)} | {
        name: _with_queues(value, queues) for name, value in networks.items()
    }


def _with_queues(value: str, queues: int) -> str:
    parts = [part for part in value.split(",") if not part.startswith("queues=")]
    if queues and value.startswith("virtio="):
        parts.append(f"queues={queues}")
    return ",".join(parts)


def _parts(value: Any) -> frozenset[str] | None:
    """Return the parts of a value, whose order means nothing."""
    return None if value is None else frozenset(str(value).split(","))

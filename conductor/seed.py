"""The form of ``[seed] flavors``."""

from __future__ import annotations

from conductor.rpc.servers.flavors import NewFlavor


def parse_flavor(text: str) -> NewFlavor:
    """Parse ``[ID:]NAME:VCPUS:MEMORY_MIB:DISK_GIB``. Raises ValueError."""
    parts = text.split(":")
    if not 4 <= len(parts) <= 5 or not parts[-4]:
        raise ValueError(f"{text}: not [ID:]NAME:VCPUS:MEMORY_MIB:DISK_GIB")
    vcpus, memory, disk = (_number(part, text) for part in parts[-3:])
    *flavorid, name = parts[:-3]
    return NewFlavor(name, vcpus, memory, disk, flavorid[0] if flavorid else None)


def _number(part: str, text: str) -> int:
    if not (part.isascii() and part.isdigit()):
        raise ValueError(f"{text}: {part} is not a number")
    return int(part)

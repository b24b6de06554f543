"""How a server gets the image that it is rescued from: Nova's image properties for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

#: the buses that a CD may be on; the first one is what every guest finds
CD_BUSES = ("sata", "ide", "scsi")


def rescue_bus(properties: Mapping[str, str]) -> str:
    """Return the bus of the CD that a server is rescued from."""
    return properties.get("hw_rescue_bus", CD_BUSES[0])


def problem(disk_format: str, properties: Mapping[str, str]) -> str | None:
    """Return, in Nova's words, why no server can be rescued from an image, or None.

    An ISO image is a CD, all others are disks, whose bus is the same as of every other disk.
    """
    is_cd = disk_format == "iso"
    device, bus = properties.get("hw_rescue_device"), rescue_bus(properties)
    if device not in (None, "cdrom" if is_cd else "disk"):
        return f"Requested rescue device '{device}' is not supported"
    if is_cd and bus not in CD_BUSES:
        return f"Requested rescue bus '{bus}' is not supported"
    return None

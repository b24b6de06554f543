"""The volumes that an image of a server that boots from volumes lists, as block devices. Pure.

Nova stores them as JSON in the image property ``block_device_mapping``, which the image's owner
may have edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from api.compute.resources.servers.block_devices import Device, invalid

MAPPING = "block_device_mapping"
#: image properties about block devices, which are not copied to a server
OWN = frozenset({MAPPING, "bdm_v2", "root_device_name"})
_SOURCES = frozenset({"snapshot", "volume", "image", "blank"})
_WRONG = "the mapping in the image's properties can't be read."


def of_image(properties: Mapping[str, Any]) -> tuple[Device, ...]:
    """Return the volumes that an image lists; none: it has data of its own. Raises Invalid."""
    text = properties.get(MAPPING)
    if not text:
        return ()
    try:
        found = json.loads(str(text))
    except ValueError as error:
        raise invalid(_WRONG) from error
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise invalid(_WRONG)
    return tuple(_device(one) for one in found if not one.get("no_device"))


def merged(listed: Sequence[Device], asked: Sequence[Device]) -> tuple[Device, ...]:
    """Return a server's devices: those that its image lists, and those requested in addition.

    A requested root disk with the image as its source means the root disk that the image lists.
    """
    if not any(one.boots for one in listed):
        return (*listed, *asked)
    return (*listed, *(one for one in asked if not (one.boots and one.source == "image")))


def _device(one: Mapping[str, Any]) -> Device:
    source, size, index = one.get("source_type"), one.get("volume_size"), one.get("boot_index")
    if source not in _SOURCES or one.get("destination_type") != "volume":
        raise invalid(_WRONG)
    uuid = None if source == "blank" else one.get(f"{source}_id")
    wrong = source != "blank" and not isinstance(uuid, str)
    wrong = wrong or not (size is None or (type(size) is int and 0 <= size < 1 << 31))
    if wrong or not (index is None or type(index) is int):
        raise invalid(_WRONG)
    return Device(
        str(source),
        True,
        uuid,
        size_gib=size or 0,
        boot_index=-1 if index is None else index,
        delete_on_termination=one.get("delete_on_termination") is True,
    )

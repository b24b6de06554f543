"""Options for the disks of a new server: its boot disk and others."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from cli.cloud import Cloud
from cli.command import argument, flag, one_of
from cli.errors import CommandFailed

_TRUTHS = {"true": True, "false": False}


def _truth(text: str) -> bool:
    return _TRUTHS[text.lower()]


#: key of ``--block-device`` → how its text is read
_DEVICE_KEYS: Mapping[str, Callable[[str], Any]] = {
    "uuid": str,
    "source_type": str,
    "destination_type": str,
    "disk_bus": str,
    "device_type": str,
    "device_name": str,
    "volume_size": int,
    "guest_format": str,
    "boot_index": int,
    "delete_on_termination": _truth,
    "tag": str,
    "volume_type": str,
}
_EPHEMERAL_KEYS: Mapping[str, Callable[[str], Any]] = {"size": int, "format": str}


def block_device(text: str) -> dict[str, Any]:
    """Return what ``uuid=…,source_type=volume,…`` says, by the API's keys.

    :raises argparse.ArgumentTypeError: a key that there is not, or a value that can't be read.
    """
    given = _read(text, _DEVICE_KEYS)
    blank = given.get("source_type", "blank") == "blank"
    if blank == ("uuid" in given):
        raise argparse.ArgumentTypeError(
            "source_type is needed with uuid, and uuid with each source_type but blank"
        )
    found = {"source_type": "blank", "destination_type": "local" if blank else "volume", **given}
    if found["destination_type"] == "local":
        found.setdefault("delete_on_termination", True)
    return found


def ephemeral(text: str) -> dict[str, Any]:
    """Return the block device of ``size=<GiB>[,format=…]``; raises as ``block_device``."""
    found = _read(text, _EPHEMERAL_KEYS)
    if "size" not in found:
        raise argparse.ArgumentTypeError("size is needed")
    formatted = {"guest_format": found["format"]} if "format" in found else {}
    return {**_LOCAL, "volume_size": found["size"], **formatted}


def swap(text: str) -> dict[str, Any]:
    """Return the block device of a size in MiB; raises ValueError."""
    return {**_LOCAL, "volume_size": int(text), "guest_format": "swap"}


_LOCAL = {
    "source_type": "blank",
    "destination_type": "local",
    "boot_index": -1,
    "delete_on_termination": True,
}


DISKS = (
    one_of(
        argument("--image", metavar="<image>", help="Image (name or ID)"),
        argument("--volume", metavar="<volume>", help="Volume to boot from (name or ID)"),
        argument(
            "--snapshot",
            metavar="<snapshot>",
            help="Snapshot of a volume to boot from, as a volume",
        ),
    ),
    argument(
        "--boot-from-volume",
        metavar="<volume-size>",
        type=int,
        help="Boot from a new volume of the image, of this size in GiB",
    ),
    flag("--delete-on-termination", help="Delete the volume that it boots from with the server"),
    argument(
        "--block-device",
        metavar="<uuid=id,source_type=volume|snapshot|image|blank,key=value>",
        type=block_device,
        action="append",
        default=[],
        dest="block_devices",
        help="Another disk (repeat); keys: " + ", ".join(_DEVICE_KEYS),
    ),
    argument(
        "--ephemeral",
        metavar="<size=size[,format=format]>",
        type=ephemeral,
        action="append",
        default=[],
        dest="ephemerals",
        help="Ephemeral disk of this size in GiB (repeat)",
    ),
    argument("--swap", metavar="<size>", type=swap, help="Swap disk of this size in MiB"),
)


def disks(cloud: Cloud, parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of ``DISKS`` as the server's attributes. Raises CommandFailed."""
    boot = _boot(cloud, parsed_args)
    others = [*parsed_args.block_devices, *parsed_args.ephemerals]
    found = [one for one in (boot, *others, parsed_args.swap) if one is not None]
    if boot is None and parsed_args.image:
        image = cloud.find("image", parsed_args.image).id
        root = {**_LOCAL, "uuid": image, "source_type": "image", "boot_index": 0}
        return {"image_id": image, **({"block_device_mapping": [root, *found]} if found else {})}
    if not any(one.get("boot_index") == 0 for one in found):
        raise CommandFailed(
            "Nothing to boot from: --image, --volume, --snapshot, or a --block-device with "
            "boot_index=0"
        )
    return {"block_device_mapping": found}


def _boot(cloud: Cloud, parsed_args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the block device that the server boots from; None: a local disk of the image."""
    size = parsed_args.boot_from_volume
    if size is not None and not parsed_args.image:
        raise CommandFailed("--boot-from-volume requires --image")
    kinds = ("volume", "snapshot", *(["image"] if size is not None else []))
    for kind in kinds:
        named = getattr(parsed_args, kind)
        if named is not None:
            return {
                "uuid": cloud.find(kind, named).id,
                "source_type": kind,
                "destination_type": "volume",
                "boot_index": 0,
                "delete_on_termination": parsed_args.delete_on_termination,
                **({} if size is None else {"volume_size": size}),
            }
    if parsed_args.delete_on_termination:
        raise CommandFailed("--delete-on-termination requires a volume to boot from")
    return None


def _read(text: str, keys: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key not in keys or not value:
            raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(keys)} with a value")
        try:
            found[key] = keys[key](value)
        except (KeyError, ValueError):
            raise argparse.ArgumentTypeError(f"{part!r}: the value can't be read") from None
    return found

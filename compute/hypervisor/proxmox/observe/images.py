"""Images: the files of storages with content ``import``, and ISO images of those with ``iso``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Any

from common import ids
from common.messages.facts import ImageFacts
from common.resources import image_files
from compute.hypervisor.proxmox.vmconfig.hardware import CONFIG_DRIVE_NAME

SUFFIXES = ("qcow2", "raw", "vmdk")
ISO = "iso"
#: content types of storages that have images
CONTENTS = frozenset({"import", ISO})
_CONFIG_DRIVE = re.compile(CONFIG_DRIVE_NAME)


def image_name(volid: str) -> str:
    """Return ``debian-12`` of ``shared:import/debian-12.qcow2``; of an ISO image with suffix."""
    file = volid.rsplit("/", 1)[-1]
    stem, _, suffix = file.rpartition(".")
    return stem if stem and suffix in SUFFIXES else file


def facts(storage: str, listed: Iterable[Mapping[str, Any]]) -> tuple[ImageFacts, ...]:
    """Return the images in a storage's listing; the name decides the id, the same everywhere."""
    found = []
    for one in listed:
        volid, form = str(one.get("volid", "")), str(one.get("format", ""))
        is_iso = one.get("content") == ISO and volid.endswith(".iso")
        if not is_iso and (one.get("content") != "import" or form not in SUFFIXES):
            continue
        if _CONFIG_DRIVE.search(volid):
            continue
        name = image_name(volid)
        uploaded = image_files.parse(volid)
        created = one.get("ctime")
        found.append(
            ImageFacts(
                id=ids.named("image", name) if uploaded is None else image_files.listed(uploaded),
                name=name,
                volid=volid,
                size_bytes=int(one.get("size") or 0),
                disk_format=ISO if is_iso else form,
                storage=storage,
                created_at=(
                    datetime.datetime.fromtimestamp(int(created), datetime.UTC)
                    if created
                    else None
                ),
                virtual_size_bytes=int(one.get("size") or 0) or None if is_iso else None,
            )
        )
    return tuple(sorted(found, key=lambda image: image.volid))

"""Importable images: the files of storages with content ``import``."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from common import ids
from common.messages.facts import ImageFacts

SUFFIXES = ("qcow2", "raw", "vmdk")


def image_name(volid: str) -> str:
    """Return ``debian-12`` of ``shared:import/debian-12.qcow2``."""
    file = volid.rsplit("/", 1)[-1]
    stem, _, suffix = file.rpartition(".")
    return stem if stem and suffix in SUFFIXES else file


def facts(storage: str, listed: Iterable[Mapping[str, Any]]) -> tuple[ImageFacts, ...]:
    """Return the images in a storage's listing; the name decides the id, the same everywhere."""
    found = []
    for one in listed:
        volid, form = str(one.get("volid", "")), str(one.get("format", ""))
        if one.get("content") != "import" or form not in SUFFIXES:
            continue
        name = image_name(volid)
        created = one.get("ctime")
        found.append(
            ImageFacts(
                id=ids.named("image", name),
                name=name,
                volid=volid,
                size_bytes=int(one.get("size") or 0),
                disk_format=form,
                storage=storage,
                created_at=(
                    datetime.datetime.fromtimestamp(int(created), datetime.UTC)
                    if created
                    else None
                ),
            )
        )
    return tuple(sorted(found, key=lambda image: image.volid))

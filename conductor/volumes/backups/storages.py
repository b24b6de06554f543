"""Which storage a backup is written to, and which hosts reach it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from common.errors import Unavailable
from conductor.store.volumes.backends import Backend

#: storage types whose answers from Proxmox VE are not known
UNKNOWN_TYPES = frozenset({"pbs"})


def choose(found: Iterable[Backend], volume: Any, wanted: str | None) -> Backend:
    """Return the storage for a backup of a volume. Raises Unavailable: its host has none. Pure.

    ``wanted``: the storage that is configured. The archive is made on the holder's node. Shared
    storages come first, then those with most room.
    """
    usable = [
        one
        for one in found
        if one.host == volume.host
        and wanted in (None, one.storage.name)
        and one.storage.type not in UNKNOWN_TYPES
    ]
    if not usable:
        which = "storage for backups" if wanted is None else f"storage {wanted} for backups"
        raise Unavailable(
            f"Service cinder-backup could not be found: host {volume.host}, which has volume "
            f"{volume.id}, has no {which}."
        )
    return min(
        usable,
        key=lambda one: (not one.storage.shared, -one.storage.available_gib, one.storage.name),
    )


def hosts(found: Iterable[Backend], backup: Any) -> dict[str, Backend]:
    """Return the hosts that have a backup's archive. Pure."""
    return {
        one.host: one
        for one in found
        if (one.cluster, one.storage.name) == (backup.cluster, backup.storage)
        and (backup.shared or one.node == backup.node)
    }


def remover(found: Iterable[Backend], backup: Any, down: Collection[str]) -> Backend | None:
    """Return the host that removes a backup's archive; None: no host reaches it. Pure."""
    able = hosts(found, backup)
    names = sorted(able, key=lambda name: (name in down, name != backup.host, name))
    return able[names[0]] if names else None

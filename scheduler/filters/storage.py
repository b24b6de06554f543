"""Filters by storage: is there a way to a disk, and room for it?"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from common.messages.facts import StorageFacts
from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import refusing
from scheduler.columnar.reasons import Codes, Group, constant, split
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host
from scheduler.hosts.usage import Amounts, Rows

_UNUSABLE = -1.0

Pool = tuple[str, ...]


def root_storage(host: Host) -> StorageFacts | None:
    """Return the storage for root disks on the node, or None."""
    name = host.facts.vm_storage
    return next((item for item in host.facts.storages if item.name == name), None)


def _available(host: Host) -> float:
    storage = root_storage(host)
    return _UNUSABLE if storage is None or not storage.active else storage.available_gib


def _thick(host: Host) -> bool:
    """Return whether a disk takes its full size at once."""
    return host.facts.disk_allocation_ratio <= 1.0


def free_at_once(columns: HostColumns) -> Amounts:
    """Return the GiB free for disks that take their full size at once; -1: not limited so."""
    limit = columns.measure(_limit).astype(np.int64)
    return np.where(limit < 0, limit, np.maximum(limit - columns.reserved_gib, 0))


def pool(host: Host) -> Pool:
    """Return what hosts with one shared storage for root disks have in common, or a host's own."""
    return _shared(host) or (host.facts.cluster, host.name)


def _shared(host: Host) -> Pool | None:
    storage = root_storage(host)
    return (host.facts.cluster, storage.name, "") if storage and storage.shared else None


def reserve(columns: HostColumns, position: int, request: RequestSpec) -> list[int]:
    """Reserve a disk on the storage of a draft's host, for all hosts that share the storage.

    Return other hosts without room for one more like it. Thin disks take nothing yet; disks of
    servers that are in the cluster already are on a shared storage as they are.
    """
    host, gib = columns.host(position), request.disk_gib
    if not _thick(host):
        return []
    mine = _shared(host)
    if mine is None:
        columns.reserved_gib[position] += gib
        return []
    if request.vm is not None and request.vm[0] == host.facts.cluster:
        return []
    there = columns.where(_shared, lambda one: one == mine)
    columns.reserved_gib[there] += gib
    free = free_at_once(columns)
    full: list[int] = np.flatnonzero(there & (free >= 0) & (free < gib)).tolist()
    return full


def _limit(host: Host) -> float:
    storage = root_storage(host)
    return storage.available_gib if storage is not None and _thick(host) else -1


def _has_disk(host: Host, request: RequestSpec) -> bool:
    """Return whether the disk of a server that moves is on the host's storage already."""
    mine = _shared(host)
    return mine is not None and request.vm is not None and request.vm[0] == mine[0]


def _at_first(request: RequestSpec) -> int:
    """Return the GiB that a thin root disk takes at first; a volume takes none of it."""
    return 0 if request.volume_backed else 1


def _no_room(columns: HostColumns, request: RequestSpec) -> Mask:
    needed = np.where(columns.measure(_thick) > 0, request.disk_gib, _at_first(request))
    available = columns.measure(_available)
    refused: Mask = available - columns.reserved_gib * columns.measure(_thick) < needed
    if request.vm is None:
        return refused
    cluster = request.vm[0]
    there = columns.where(_shared, lambda one: one is not None and one[0] == cluster)
    return refused & (~there | (available < 0))


def _state(host: Host) -> tuple[str, str, bool]:
    """Return the storage, why it can't be used, and whether disks take their full size at once."""
    return host.facts.vm_storage, _unusable(host), _thick(host)


def _unusable(host: Host) -> str:
    name, storage = host.facts.vm_storage, root_storage(host)
    if storage is None:
        return f"storage {name or '(none)'} is not on the node"
    return "" if storage.active else f"storage {name} is not active"


def _too_little(name: str, gib: int) -> tuple[str, ...]:
    """Return the parts of a sentence around what is free."""
    return "", f" GiB free on {name}, {gib} GiB asked"


def _why_no_room(
    columns: HostColumns, request: RequestSpec, positions: Rows, most: int | None
) -> Iterator[Group]:
    """Return reasons by group, with what is free as a column."""
    for among in split(columns.codes(_state)[positions], most):
        mine = positions[among]
        name, unusable, thick = _state(columns.host(int(mine[0])))
        if unusable:
            yield Group(mine, constant(unusable))
            continue
        needed = request.disk_gib if thick else _at_first(request)
        text = functools.partial(_too_little, name, needed)
        free = columns.measure(_available)[mine] - (columns.reserved_gib[mine] if thick else 0)
        yield Group(mine, text, (np.maximum(free, 0).astype(np.int64),))


@host_filter(after="disk_way", words="no room on the storage")
@refusing(_no_room, by_group=_why_no_room)
def storage_room(host: Host, request: RequestSpec) -> str | None:
    """Refuse nodes whose storage for root disks is missing, inactive or really full.

    Placement counts allocations; this looks at the storage, so that one filled by others is
    noticed. Thin storages may be overcommitted: only the image must fit now, but at least 1 GiB.
    A server that moves within its cluster has its disk on a shared storage already.
    """
    storage = root_storage(host)
    if storage is None or not storage.active:
        return _unusable(host)
    if _has_disk(host, request):
        return None
    needed = request.disk_gib if _thick(host) else _at_first(request)
    free = storage.available_gib - (host.reserved_gib if _thick(host) else 0)
    if free < needed:
        return f"{max(free, 0)}".join(_too_little(storage.name, needed))
    return None


class Ways(NamedTuple):
    """The conditions of getting a disk from an image on a node."""

    importing: bool
    cloning: bool
    """Ways to clone a template, if the image has one on the node."""
    uploading: bool
    """Whether config drives are possible."""


def _ways(host: Host) -> Ways:
    known = host.facts.capabilities
    return Ways(
        known.get("import_from", True),
        known.get("linked_clone", False) or known.get("full_clone", False),
        known.get("upload", True),
    )


def _cached(host: Host) -> tuple[str, ...]:
    return host.facts.cached_images


def _no_way(columns: HostColumns, request: RequestSpec) -> Mask | None:
    if request.image_id is None and not request.volume_backed:
        return None
    refused = ~columns.where(_ways, lambda ways: ways.uploading)
    doubtful = ~columns.where(_ways, lambda ways: ways.importing)
    # A server's image is a template, and never imported.
    imported = request.image_id is not None and request.image_home is None
    if imported and doubtful.any():
        cloning = columns.where(_ways, lambda ways: ways.cloning)
        refused |= doubtful & ~(cloning & columns.having(_cached, request.image_id or ""))
    return refused


def _version(host: Host) -> str:
    return host.facts.hypervisor_version


def _by_way(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    cached = columns.having(_cached, request.image_id or "")
    return columns.codes(_ways), columns.codes(_version), cached.astype(np.int64)


@host_filter(after="vlan_reach", words="no way from the image to a disk")
@refusing(_no_way, same_reason=_by_way)
def disk_way(host: Host, request: RequestSpec) -> str | None:
    """Refuse nodes without a way from the image to a disk, or without one to a config drive.

    Agents report the ways that a node's Proxmox VE and its storages offer; those that an agent
    doesn't report count as present.
    """
    if request.image_id is None and not request.volume_backed:
        return None
    ways = _ways(host)
    imported = request.image_id is not None and request.image_home is None
    if (
        imported
        and not ways.importing
        and not (ways.cloning and request.image_id in _cached(host))
    ):
        version = host.facts.hypervisor_version or "unknown"
        return (
            "no way to a disk: no storage with content 'import', or too old for it "
            f"(version {version}, 8.4 needed), and no template of the image"
        )
    if not ways.uploading:
        return "no storage for config drives (content 'iso')"
    return None

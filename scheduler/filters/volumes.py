"""Filter by volumes: does the node reach those that a server has, or can they be made there?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from common.messages.scheduling import RequestSpec, VolumeNeed
from scheduler.columnar.forms import refusing
from scheduler.columnar.reasons import Codes
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host


class Reach(NamedTuple):
    """A node, and the GiB free on each of its storages that take disks."""

    cluster: str
    node: str
    storages: frozenset[tuple[str, int]]


def _reach(host: Host) -> Reach:
    facts = host.facts
    usable = (one for one in facts.storages if one.active and "images" in one.content)
    storages = frozenset((one.name, one.available_gib) for one in usable)
    return Reach(facts.cluster, facts.node, storages)


def _images(host: Host) -> tuple[str, ...]:
    return host.images


def _unreached(columns: HostColumns, request: RequestSpec) -> Mask | None:
    if not request.volumes:
        return None
    refused = columns.where(
        _reach, lambda reach: any(_missing(reach, need) for need in request.volumes)
    )
    for image_id in _needed_images(request):
        refused |= ~columns.having(_images, image_id)
    return refused


def _by_reach(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    yield columns.codes(_reach)
    for image_id in _needed_images(request):
        yield columns.having(_images, image_id).astype(np.int64)


@host_filter(after="storage_room", words="no storage for its volumes")
@refusing(_unreached, same_reason=_by_reach)
def volume_reach(host: Host, request: RequestSpec) -> str | None:
    """Refuse nodes that don't reach a server's volumes, or where these can't be made.

    A volume on a node's own storage is reached from this node alone.
    """
    reach = _reach(host)
    missing = [why for need in request.volumes if (why := _missing(reach, need))]
    missing += [
        f"image {image_id} of a volume is on none of its storages"
        for image_id in _needed_images(request)
        if image_id not in host.images
    ]
    return "; ".join(dict.fromkeys(missing)) or None


def _needed_images(request: RequestSpec) -> Iterator[str]:
    """Yield the images that volumes are made from, except volumes with a fixed place."""
    for need in request.volumes:
        if need.image_id is not None and need.home is None:
            yield need.image_id


def _missing(reach: Reach, need: VolumeNeed) -> str | None:
    return _volume_missing(reach, need) if need.is_there else _cannot_make(reach, need)


def _volume_missing(reach: Reach, need: VolumeNeed) -> str | None:
    if reach.cluster != need.cluster:
        return f"in cluster {reach.cluster}, a volume is in {need.cluster}"
    if need.node not in (None, reach.node):
        return f"a volume is on storage {need.storage}, which only node {need.node} has"
    if all(name != need.storage for name, _ in reach.storages):
        return f"storage {need.storage}, which has a volume, is not on the node"
    return None


def _cannot_make(reach: Reach, need: VolumeNeed) -> str | None:
    if need.home is not None and (need.home.cluster, need.home.node) != reach[:2]:
        return f"image {need.image_id} of a volume, made of a server, is only on {need.home}"
    free = [gib for name, gib in reach.storages if need.storage in (None, name)]
    if not free:
        return f"no storage {need.storage or 'for disks'} on the node, for a volume"
    if max(free) < need.gib:
        return f"{max(free)} GiB free on {need.storage or 'its storages'}, a volume of {need.gib}"
    return None

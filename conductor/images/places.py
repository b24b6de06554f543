"""Where uploaded images go: one storage of each cluster (pure)."""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from common.messages.facts import StorageFacts
from conductor.store.hosts.host_storages import HostStorages

_GIB = 2**30


@dataclass(frozen=True)
class ImagePlace:
    """A host whose agent gives its cluster an image, and the storage that gets it."""

    host: str
    cluster: str
    node: str
    storage: str


def choose(hosts: Iterable[HostStorages], content: str, size_bytes: int) -> list[ImagePlace]:
    """Return the places that get an image: one of each cluster with a storage for this content.

    A shared storage comes first, the one with most room; it is written once, by the first of its
    hosts. Else it is the local storage that most nodes have, and each of them gets the image.
    """
    found: list[ImagePlace] = []
    in_order = sorted(hosts, key=lambda one: (one.cluster, one.host))
    for _, together in itertools.groupby(in_order, key=lambda one: one.cluster):
        found += _of_cluster(list(together), content, size_bytes)
    return found


def of_volume(hosts: Iterable[HostStorages], storage: str) -> list[ImagePlace]:
    """Return where a cluster's file of this storage may be: once if it is shared, else by node."""
    having = [
        (host, one)
        for host in sorted(hosts, key=lambda each: each.host)
        for one in host.storages
        if one.name == storage
    ]
    shared = any(one.shared for _, one in having)
    return [_place(host, storage) for host, _ in having][: 1 if shared else None]


def _of_cluster(hosts: Sequence[HostStorages], content: str, size_bytes: int) -> list[ImagePlace]:
    usable = list(_usable(hosts, content, size_bytes))
    shared = [(host, one) for host, one in usable if one.shared]
    if shared:
        most = max(one.available_gib for _, one in shared)
        host, one = next(pair for pair in shared if pair[1].available_gib == most)
        return [_place(host, one.name)]
    counted = Counter(one.name for _, one in usable)
    if not counted:
        return []
    name = min(counted.items(), key=lambda item: (-item[1], item[0]))[0]
    return [_place(host, name) for host, one in usable if one.name == name]


def _usable(
    hosts: Sequence[HostStorages], content: str, size_bytes: int
) -> Iterator[tuple[HostStorages, StorageFacts]]:
    for host in hosts:
        for one in sorted(host.storages, key=operator.attrgetter("name")):
            # What is available is rounded down.
            room = (one.available_gib + 1) * _GIB > size_bytes
            if one.active and content in one.content and room:
                yield host, one


def _place(host: HostStorages, storage: str) -> ImagePlace:
    return ImagePlace(host.host, host.cluster, host.node, storage)

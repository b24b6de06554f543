"""Chooses the storage of a new volume by its type, its zone and the free space. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from conductor.store.volumes.backends import Backend
from conductor.volumes import capabilities

Pool = tuple[str, str, str]
"""See ``Backend.pool``."""


@dataclass(frozen=True)
class VolumePlacement:
    """What a volume's place must be."""

    size_gib: int
    storage: str | None = None
    """That of its type; None: any."""
    zone: str | None = None
    clusters: frozenset[str] | None = None
    """Those that have its image; None: any."""
    host: str | None = None
    """A host that must reach it."""
    at: tuple[str, str] | None = None
    """Cluster and node, where the image of a server is: a template's disk is copied only there."""
    hosts: frozenset[str] | None = None
    """Those that have the backup that it is made of; None: any."""
    on: str | None = None
    """The host where it is copied, which has the holder of what it is copied from."""
    new: bool = True
    """Whether it must be where new volumes may be."""
    specs: Mapping[str, str] = field(default_factory=dict)
    """The extra specs of its type."""


#: of a volume that is copied from nothing
ANYWHERE = VolumePlacement(0)


def choose(
    backends: Sequence[Backend],
    promised: Mapping[Pool, int],
    wanted: VolumePlacement,
    down: Collection[str] = (),
) -> Backend | str:
    """Return the place, or why there is none, in a sentence.

    Shared storages come first, then the one with most room; what is promised to volumes counts as
    used. Of a shared one any of its hosts does whose agent isn't ``down``: the first by name.
    """
    found = list(backends)
    reach = {one.pool for one in found if one.host == wanted.host}
    tests: tuple[tuple[str, Callable[[Backend], bool]], ...] = (
        ("takes disks", lambda _: True),
        (f"is {wanted.storage}", lambda one: wanted.storage in (None, one.storage.name)),
        (
            f"has what its type asks for ({', '.join(_unmet(backends, wanted))})",
            lambda one: not any(capabilities.unmet(one.capabilities, wanted.specs)),
        ),
        (f"is in zone {wanted.zone}", lambda one: wanted.zone in (None, one.zone)),
        (
            "is in a cluster that has the image",
            lambda one: wanted.clusters is None or one.cluster in wanted.clusters,
        ),
        (
            f"node {wanted.at[1] if wanted.at else ''}, which has the server's image, has",
            lambda one: wanted.at in (None, (one.cluster, one.node)),
        ),
        (
            "is on a host that has the backup",
            lambda one: wanted.hosts is None or one.host in wanted.hosts,
        ),
        (f"host {wanted.on} has", lambda one: wanted.on in (None, one.host)),
        (
            f"host {wanted.host} reaches",
            lambda one: wanted.host is None or one.pool in reach,
        ),
        (
            f"has {wanted.size_gib} GiB left",
            lambda one: _room(one, promised) >= wanted.size_gib,
        ),
        (
            "is on a host whose volume service is enabled",
            lambda one: not (wanted.new and one.disabled),
        ),
        ("is on a host whose agent answers", lambda one: one.host not in down),
    )
    for words, test in tests:
        found = [one for one in found if test(one)]
        if not found:
            return f"No valid backend was found: there is no storage that {words}."
    return min(found, key=lambda one: _order(one, promised))


def _unmet(backends: Sequence[Backend], wanted: VolumePlacement) -> list[str]:
    """Return the extra specs that no storage meets, or else those that some storage doesn't."""
    named = [one for one in backends if wanted.storage in (None, one.storage.name)]
    every = [set(capabilities.unmet(one.capabilities, wanted.specs)) for one in named]
    return sorted(set.intersection(*every) or set.union(*every)) if every else []


def _order(one: Backend, promised: Mapping[Pool, int]) -> tuple[bool, int, str, str]:
    return (not one.storage.shared, -_room(one, promised), one.storage.name, one.host)


def _room(one: Backend, promised: Mapping[Pool, int]) -> int:
    return min(one.storage.available_gib, one.storage.total_gib - promised.get(one.pool, 0))

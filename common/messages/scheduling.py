"""Requests to the scheduler, and its decisions."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.resources.server_groups import GroupFacts

#: the result of a claim that was not made, as too few servers of a create have a host
LEFT = "left, as min_count isn't met"


@dataclass(frozen=True)
class ImageHome:
    """Where a server's image is: a template, the only copy of it."""

    cluster: str
    storage: str
    node: str
    shared: bool = False
    """Whether the cluster's other nodes reach the storage."""

    def reached_from(self, cluster: str, node: str, vm_storage: str) -> bool:
        """Return whether servers of this node can be made of it."""
        here = (cluster, vm_storage) == (self.cluster, self.storage)
        return here and (self.shared or node == self.node)

    def __str__(self) -> str:
        """Return the place in words."""
        if self.shared:
            return f"storage {self.storage} of cluster {self.cluster}"
        return f"storage {self.storage} of node {self.node} in cluster {self.cluster}"


@dataclass(frozen=True)
class VolumeNeed:
    """What one of a server's volumes needs of the host."""

    storage: str | None = None
    """The storage that the host must reach; None: any that takes disks."""
    cluster: str | None = None
    """The volume's cluster; None: it is made on the server's host."""
    node: str | None = None
    """The only node that has its storage; None: the storage is shared, or the volume not made."""
    gib: int = 0
    """The room that the storage must have for it; 0: the volume is there."""
    image_id: str | None = None
    """What it is made of; None: of nothing that hosts must have."""
    home: ImageHome | None = None
    """The only place of that image."""

    @property
    def is_there(self) -> bool:
        """Return whether the volume exists."""
        return self.cluster is not None


@dataclass(frozen=True)
class RequestSpec:
    """What one server needs of a host."""

    server_uuid: str
    project_id: str
    user_id: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    image_id: str | None = None
    image_properties: Mapping[str, str] = field(default_factory=dict)
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    availability_zone: str | None = None
    networks: tuple[str, ...] = ()
    """Bridges that the node must have."""
    vlans: tuple[tuple[str, int], ...] = ()
    """(bridge, VLAN tag that it must take)."""
    ignore_hosts: tuple[str, ...] = ()
    kept_hosts: tuple[str, ...] = ()
    """Hosts whose room is kept for servers that wait for it longer."""
    force_host: str | None = None
    cluster: str | None = None
    """The cluster that it can't leave."""
    vm: tuple[str, int] | None = None
    """(cluster, VMID) of an existing server's VM."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    server_hosts: Mapping[str, str] = field(default_factory=dict)
    """Server → its host, of the servers in the hints; those without a host are left out."""
    group: GroupFacts | None = None
    """Its server group."""
    until: datetime.datetime | None = None
    """When the caller gives up waiting: nothing may be claimed after it."""
    least_memory_mib: int = 0
    """The image's minimum disk and memory."""
    least_disk_gib: int = 0
    claimed: bool = False
    """It has its resources on the host already: only what else it needs is checked."""
    image_home: ImageHome | None = None
    """The only place of its image; None: hosts say whether they have it."""
    by_itself: bool = False
    """It was asked for by itself, so its decision has every detail, independent of others'."""
    least: int = 0
    """Of servers that are decided on together: where fewer have a host, none is claimed."""
    volumes: tuple[VolumeNeed, ...] = ()
    volume_backed: bool = False
    """Its root disk is one of the volumes: it needs no room for a disk of its own."""

    @property
    def kind(self) -> RequestSpec:
        """What requests of one kind have in common: they differ in their servers only."""
        return dataclasses.replace(self, server_uuid="", until=None)


@dataclass(frozen=True)
class Alternate:
    """Another host that passed."""

    host: str
    uuid: str
    score: float


@dataclass(frozen=True)
class Change:
    """A field of ``RequestSpec`` as requested, and the value that would have worked."""

    field: str
    asked: Any
    works: Any


@dataclass(frozen=True)
class Way:
    """A change to a request for which there would be a host."""

    changes: tuple[Change, ...]
    hosts: int
    """How many hosts would do."""
    host: str
    """The host that needs the least change."""


@dataclass(frozen=True)
class Suggestion(Way):
    """The smallest such change."""

    others: tuple[Way, ...] = ()
    """Others as small, if the server group is the reason."""


#: filters that refuse a host because it is full now
ROOM_FILTERS = frozenset({"resources", "storage_room"})


@dataclass(frozen=True)
class Refused:
    """Hosts that one filter refused for the same reason, except for its numbers."""

    text: tuple[str, ...]
    """The sentence, split where each host's numbers belong."""
    hosts: tuple[str, ...]
    numbers: tuple[tuple[int, ...], ...] = ()
    """For each gap, the number of each host."""

    def reasons(self) -> Iterator[tuple[str, str]]:
        """Yield each host with its sentence."""
        first, *rest = self.text
        if not rest:
            yield from ((host, first) for host in self.hosts)
            return
        for host, *numbers in zip(self.hosts, *self.numbers, strict=True):
            pairs = zip(numbers, rest, strict=True)
            yield host, first + "".join(f"{number}{after}" for number, after in pairs)

    def first(self, count: int) -> Refused:
        """Return the first hosts."""
        return Refused(
            self.text, self.hosts[:count], tuple(column[:count] for column in self.numbers)
        )


@dataclass(frozen=True)
class Decision:
    """The scheduler's decision for one server, and its reasons: stored under the request ID."""

    server_uuid: str
    host: str | None
    """The chosen and claimed host; None: there was none."""
    uuid: str | None = None
    alternates: tuple[Alternate, ...] = ()
    considered: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    """filter → how many hosts it refused."""
    refused: Mapping[str, tuple[Refused, ...]] = field(default_factory=dict)
    """filter → hosts with their reasons, by group; capped."""
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """host → {weigher: weighted score}, best hosts first, capped."""
    claims: tuple[Mapping[str, Any], ...] = ()
    """Tries to claim, in order: {host, result, generation_retries: how often it was repeated
    because a generation of placement had changed}; and commit_retries, of the conductor's own
    transaction, if there were any."""
    reason: str | None = None
    """Why there was no host, and what would have worked, in two sentences; for operators."""
    owner_reason: str | None = None
    """The same for the server's owner, without hosts and their numbers. Written by the
    conductor, which knows the owner's flavors."""
    suggestion: Suggestion | None = None
    seconds: float = 0.0

    @property
    def found(self) -> bool:
        """Return whether there was a host for it, though none is claimed where others of its
        create have none."""
        return self.host is not None or any(one["result"] == LEFT for one in self.claims)

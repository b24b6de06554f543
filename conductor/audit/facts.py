"""The facts that the audit compares: of the record, of placement, and of every cluster."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.messages.commands import StrictGroup
from common.messages.filters import FilterCheck
from common.messages.inventory import ClusterInventory
from common.resources.states import ResourceType
from conductor.store.networks.segments import TagRange
from conductor.store.networks.vnets import Vnet
from conductor.sync import allocations as resources

#: (cluster, VMID)
Place = tuple[str, int]


@dataclass(frozen=True)
class ServerFacts:
    """A server's record, as far as it is compared."""

    uuid: str
    project_id: str
    user_id: str
    vm_state: str
    task_state: str | None
    operation_id: int | None
    host: str | None
    node: str | None
    cluster: str | None
    vmid: int | None
    vcpus: int
    memory_mib: int
    disk_gib: int
    held: bool
    addresses: tuple[str, ...]
    deleted_at: datetime.datetime | None
    flavor: Mapping[str, Any] = field(default_factory=dict)
    image_properties: Mapping[str, str] = field(default_factory=dict)
    image_id: str | None = None
    """The image that the create named."""
    server_group_uuid: str | None = None
    claim: Mapping[str, int] | None = None
    """What it holds while a resize of it is open; None: as its size says."""

    @property
    def place(self) -> Place | None:
        """Where its VM is by the record; None: it has none."""
        if self.deleted_at is not None or self.vmid is None or self.cluster is None:
            return None
        return self.cluster, self.vmid

    @property
    def amounts(self) -> dict[str, int]:
        """Return what it uses of its host in placement."""
        if self.claim is not None:
            return dict(self.claim)
        return resources.wanted(self)


@dataclass(frozen=True)
class OpenOperation:
    """An operation that has not ended."""

    id: int
    resource_type: str
    resource_id: str
    action: str
    state: str
    attempt: int
    started_at: datetime.datetime
    deadline: datetime.datetime | None
    message: str | None

    @property
    def server_uuid(self) -> str | None:
        """The server that it is about, if it is one."""
        return self.resource_id if self.resource_type == ResourceType.SERVER else None


@dataclass(frozen=True)
class Reservation:
    """A row of ``vmids``."""

    cluster: str
    vmid: int
    state: str
    server_uuid: str | None
    reason: str | None
    since: datetime.datetime
    read_at: datetime.datetime | None = None
    """When the description of its VM was last read."""


@dataclass(frozen=True)
class VolumeFacts:
    """A volume of a project, and its holder."""

    id: str
    status: str
    cluster: str | None
    node: str | None
    vmid: int | None
    volid: str | None
    size_gib: int = 0
    storage: str | None = None
    shared: bool = False
    """Whether other nodes have its storage, too."""


@dataclass(frozen=True)
class AttachmentFacts:
    """That a server has a volume, is to have it, or to lose it."""

    volume_id: str
    server_uuid: str
    status: str
    slot: int


@dataclass(frozen=True)
class SnapshotFacts:
    """A snapshot of a volume."""

    id: str
    volume_id: str
    status: str
    snapname: str | None
    """Its name in the volume's holder; None: it is a copy."""


@dataclass(frozen=True)
class BackupFacts:
    """A backup of a volume, and its archive."""

    id: str
    status: str
    cluster: str | None
    node: str | None
    archive: str | None


@dataclass(frozen=True)
class PortFacts:
    """A port and its addresses."""

    id: str
    server_uuid: str
    ip: str | None
    ip6: str | None = None
    mac: str = ""
    network_id: str = ""
    port_security: bool | None = None
    """Whether it is filtered."""
    more_addresses: Sequence[Sequence[str]] | None = None
    """(subnet, address) beyond the first one of each family."""

    @property
    def ips(self) -> tuple[str, ...]:
        """Return its addresses."""
        found = (self.ip, self.ip6, *(ip for _, ip in self.more_addresses or ()))
        return tuple(ip for ip in found if ip)


@dataclass(frozen=True)
class NetworkFacts:
    """What a network is on the wire."""

    id: str
    name: str
    bridge: str
    vlan: int | None


@dataclass(frozen=True)
class GroupPlace:
    """The place that a server of a strict group takes on its host."""

    server_uuid: str
    group_uuid: str
    host: str


@dataclass(frozen=True)
class HolderFacts:
    """A migration to another host: its UUID may be a consumer, and have a place in a group."""

    uuid: str
    server_uuid: str
    open: bool
    host: str | None
    """The host whose resources it holds while it is open."""
    amounts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TemplateFacts:
    """The record of an image's template."""

    cluster: str
    vmid: int
    image_id: str


@dataclass(frozen=True)
class UploadFacts:
    """An image whose data a user sent."""

    id: str
    status: str
    locations: Mapping[str, str]
    """Cluster → volume."""


@dataclass(frozen=True)
class HostFact:
    """A host and its provider."""

    host: str
    uuid: str
    cluster: str
    node: str


@dataclass(frozen=True)
class Facts:
    """One look at everything. What could not be read is missing, and named in ``unseen``."""

    now: datetime.datetime
    cloud: str = ""
    """The id of this cloud in marks."""
    restored: str | None = None
    """What proves that the database was restored, in a sentence, while that is undecided."""
    servers: Mapping[str, ServerFacts] = field(default_factory=dict)
    """Those that are not deleted, by UUID, and all others that something names."""
    busy: frozenset[str] = frozenset()
    """Servers with an open operation before or after the look: they are in flux."""
    left: frozenset[str] = frozenset()
    """Consumers in placement of what builds left on hosts, whose removal is under way."""
    operations: tuple[OpenOperation, ...] = ()
    deleted_on_request: frozenset[str] = frozenset()
    """Servers that the ledger has deleted, and that were not released or abandoned."""
    released: frozenset[str] = frozenset()
    """Unmanaged servers: their VM and config drive stay, and are not ours any more."""
    journal: Mapping[Place, frozenset[str]] = field(default_factory=dict)
    """Servers that ever had a VMID where something was found, without VMIDs that were refused
    because others had them."""
    refused: Mapping[Place, frozenset[str]] = field(default_factory=dict)
    """Servers whose builds were refused a VMID because others had it, by place."""
    read: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """VMIDs of the record whose VMs' descriptions were requested in this look, by cluster."""
    template_places: frozenset[Place] = frozenset()
    """Places with a finding that once were a template's."""
    bands: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """First and last VMID of our own band, by cluster, if known."""
    reservations: Mapping[Place, Reservation] = field(default_factory=dict)
    templates: tuple[TemplateFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    backups: tuple[BackupFacts, ...] = ()
    busy_backups: frozenset[str] = frozenset()
    """Backups with an open operation."""
    busy_holders: frozenset[Place] = frozenset()
    """Where open operations make, change or remove holders, before or after the look: no volume's
    record may name them."""
    attachments: tuple[AttachmentFacts, ...] = ()
    snapshots: tuple[SnapshotFacts, ...] = ()
    busy_volumes: frozenset[str] = frozenset()
    """Volumes with an open operation before or after the look, and volumes whose attachment or
    snapshots changed in between."""
    ports: tuple[PortFacts, ...] = ()
    networks: Mapping[str, NetworkFacts] = field(default_factory=dict)
    """By their ids."""
    mac_prefix: str = ""
    """How the MAC addresses begin that this cloud gives."""
    tenant_vlans: tuple[TagRange, ...] = ()
    """VLAN tags that are for networks of projects alone."""
    firewalls: Mapping[str, FilterCheck] | None = None
    """How the firewalls of servers' VMs differ, of those that were looked at; None: ports are
    not filtered here."""
    firewalls_due: frozenset[str] = frozenset()
    """Servers whose firewalls were still to be written before or after the look."""
    group_places: tuple[GroupPlace, ...] = ()
    groups: Mapping[str, StrictGroup] = field(default_factory=dict)
    """Server groups of strict policies, by UUID."""
    hosts: Mapping[str, HostFact] = field(default_factory=dict)
    inventories: Mapping[str, ClusterInventory] = field(default_factory=dict)
    uploads: Mapping[str, UploadFacts] = field(default_factory=dict)
    """By their ids."""
    busy_images: frozenset[str] = frozenset()
    """Images with an open operation before or after the look."""
    uploaded: frozenset[str] = frozenset()
    """Of the images whose files were found, those that the ledger has an upload of."""
    vnets: Mapping[tuple[str, str], Vnet] = field(default_factory=dict)
    """What clusters have, or are to have, for networks, by cluster and network."""
    busy_networks: frozenset[str] = frozenset()
    """Networks with an open operation before or after the look."""
    networked: frozenset[str] = frozenset()
    """Of the networks whose vnets were found, those that the ledger has the making of."""
    holders: Mapping[str, HolderFacts] = field(default_factory=dict)
    """Open migrations to another host, by UUID, and ended ones that something names."""
    allocations: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None
    """{consumer: {provider: {resource class: amount}}}; None: placement doesn't answer."""
    unseen: tuple[str, ...] = ()
    """What could not be read, a sentence each."""


@dataclass(frozen=True)
class Finding:
    """One difference."""

    kind: str
    subject: str
    """What it is about, unique within the kind: ``sim1/100001``, a UUID, a volume …"""
    cause: str
    """What was seen and what the record says, in a sentence."""
    proven: bool = True
    """Whether the proof that the kind's verb needs was seen."""
    server_uuid: str | None = None
    cluster: str | None = None
    node: str | None = None
    vmid: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """The key by which two looks are compared."""
        return self.kind, self.subject

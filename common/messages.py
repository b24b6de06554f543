"""What the services say to each other: commands to agents, reports from them, facts about hosts.

All are frozen dataclasses of plain values that cross RPC as JSON (``common.wire``). A field added
later has a default, so that a message of an older release still loads.

A command carries everything that was reserved for it (node, VMID, names, addresses), so an agent
needs no journal and no database: it converges the VMID to what is asked, or to absent.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.server_groups import GroupFacts

#: topics of the message bus
CONDUCTOR_TOPIC = "conductor"
SCHEDULER_TOPIC = "scheduler"
COMPUTE_TOPIC = "compute"
#: fanout: facts about hosts, for whoever follows them (``update_hosts``)
HOST_FACTS_TOPIC = "host_facts"
#: fanout to the agents: "say all you know" (``announce``), from somebody who just started
ANNOUNCE_TOPIC = "compute_announce"


class Category(enum.StrEnum):
    """Every error of provisioning; ``common.failures`` says what each means."""

    API_NOT_SUPPORTED = "api_not_supported"
    CONFIGURATION = "configuration"
    AUTHORIZATION = "authorization"
    QUOTA_EXCEEDED = "quota_exceeded"
    NO_VALID_HOST = "no_valid_host"
    NODE_UNHEALTHY = "node_unhealthy"
    IMAGE_NOT_FOUND = "image_not_found"
    IMAGE_CORRUPT = "image_corrupt"
    TEMPLATE_LOCKED = "template_locked"
    LOCK = "lock"
    STORAGE_CONFLICT = "storage_conflict"
    STORAGE_FULL = "storage_full"
    NETWORK = "network"
    TASK_TIMEOUT = "task_timeout"
    UNKNOWN_OUTCOME = "unknown_outcome"
    CREATION_FAILED = "creation_failed"
    VANISHED = "vanished"


# --- commands -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """Where a server's VM is, or shall be: the reservation that the journal holds."""

    host: str
    """Compute host, unique in the cloud."""
    cluster: str
    node: str
    vmid: int


@dataclass(frozen=True)
class Nic:
    """One network interface, fully decided."""

    port_id: str
    network_id: str
    network_name: str
    bridge: str
    mac: str
    mtu: int | None = None
    vlan: int | None = None
    ip: str | None = None
    cidr: str | None = None
    gateway: str | None = None
    dns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """An image, and where the cluster of the placed host has it."""

    id: str
    name: str
    volid: str
    """The import volume, e.g. ``shared:import/debian-12.qcow2``."""
    size_bytes: int = 0
    min_disk_gib: int = 0
    checksum: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Template:
    """The cached template to clone from; its VMID is reserved whether or not it exists yet."""

    vmid: int
    node: str
    storage: str


@dataclass(frozen=True)
class ConfigDrive:
    """What the guest shall find on its config drive (OpenStack's formats)."""

    meta_data: Mapping[str, Any]
    network_data: Mapping[str, Any]
    vendor_data: Mapping[str, Any]
    user_data: str | None = None
    """Base64, as the user sent it."""


@dataclass(frozen=True)
class Command:
    """The head of every command. Sending it twice does no harm: same operation, same answer."""

    operation_id: int
    attempt: int
    server_uuid: str
    placed: Placed
    deadline: datetime.datetime
    """When the agent shall give up and report so."""


@dataclass(frozen=True)
class Build(Command):
    """Make the VM that the record describes and see it run; on failure leave nothing."""

    name: str = ""
    hostname: str = ""
    project_id: str = ""
    user_id: str = ""
    vcpus: int = 1
    memory_mib: int = 0
    disk_gib: int = 0
    storage: str | None = None
    """Storage of the root disk; None: the host's default."""
    image: Image | None = None
    template: Template | None = None
    nics: tuple[Nic, ...] = ()
    config_drive: ConfigDrive | None = None
    tags: tuple[str, ...] = ()
    cloud: str = ""
    """Of which cloud the templates are: several may make some of one image in one cluster."""


@dataclass(frozen=True)
class CacheImage(Build):
    """Have the image of a build where it can be cloned, ahead of any build; nothing else is made.

    It belongs to no operation and no server, as ``RetireTemplate``; its VMID is the template's.
    """


@dataclass(frozen=True)
class RetireTemplate(Command):
    """Make an image's cached template absent, if it is ours and nothing hangs on it.

    It belongs to no operation (``operation_id`` is 0) and to no server: ``server_uuid`` is
    ``<cluster>/<VMID>``.
    """

    image_id: str = ""
    cloud: str = ""


@dataclass(frozen=True)
class Destroy(Command):
    """Make the VMID absent, if it is provably ours: stop, purge, see config and volumes gone."""

    graceful: bool = False


class PowerAction(enum.StrEnum):
    """What a Power command asks for."""

    START = "start"
    STOP = "stop"
    REBOOT_SOFT = "reboot_soft"
    REBOOT_HARD = "reboot_hard"


@dataclass(frozen=True)
class Power(Command):
    """Bring the VM to a power state and see it there."""

    action: PowerAction = PowerAction.START


@dataclass(frozen=True)
class Mark(Command):
    """Put the owner mark on a VM that is there, or take it off. Nothing else is changed."""

    on: bool = True
    smbios_uuid: str | None = None
    """The SMBIOS UUID that the VM had when it was looked at; None: it has none."""


# --- reports ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A step of an operation, reported before and after; the later report replaces the earlier.

    A report may overtake another one on the bus, so each carries all that is known so far.
    """

    name: str
    """As ``os-instance-actions`` shows it, e.g. ``compute_create_vm``."""
    sequence: int
    """Order within the attempt, from 0."""
    started_at: datetime.datetime
    finished_at: datetime.datetime | None = None
    result: str | None = None
    """``Success`` or ``Error`` once finished (Nova's words)."""
    upid: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Facts worth telling: node, VMID, storage, bytes, what was found."""


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed, in the words of whoever saw it, and what was cleaned up."""

    category: Category
    message: str
    step: str | None = None
    host: str | None = None
    upid: str | None = None
    log_tail: tuple[str, ...] = ()
    cleaned: tuple[str, ...] = ()
    """What was removed again, e.g. ``VM 100123 on pve1``, ``volume local:100123/…``."""
    clean: bool = True
    """Whether nothing of this attempt is left: config and volumes seen absent."""
    left: tuple[str, ...] = ()
    """What could not be removed or may not be touched; the operator's list."""
    remedy: str | None = None
    """The one exact command or action for the operator, where there is one."""
    verdict: str | None = None
    """Where to go on (``common.failures.Verdict``), where it isn't what the category says."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    ok: bool
    power_state: int = 0
    vm_state_hint: str | None = None
    failure: Failure | None = None
    gone: bool = False
    """After a Destroy, or a failed Build: config and volumes were seen absent."""


@dataclass(frozen=True)
class Report:
    """News of one operation from an agent. Steps are cumulative per name, outcome comes last."""

    operation_id: int
    attempt: int
    server_uuid: str
    host: str
    steps: tuple[Step, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Working:
    """A sign of life for an operation that takes its time: renews the lease."""

    operation_id: int
    attempt: int
    host: str


# --- facts about hosts --------------------------------------------------------------------------


@dataclass(frozen=True)
class StorageFacts:
    """One storage as one node sees it; sizes in GiB, rounded down."""

    name: str
    type: str
    shared: bool
    active: bool
    total_gib: int
    available_gib: int
    content: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageFacts:
    """An image that a cluster can import."""

    id: str
    name: str
    volid: str
    size_bytes: int
    disk_format: str
    storage: str
    created_at: datetime.datetime | None = None
    virtual_size_bytes: int | None = None


@dataclass(frozen=True)
class HostFacts:
    """All that is known of one compute host: what it has, what it can, how it is."""

    host: str
    cluster: str
    node: str
    uuid: str
    """Of its resource provider and hypervisor: the same for ever."""
    worker: str
    """The agent process that takes its commands: the server name on the ``compute`` topic."""
    availability_zone: str
    observed_at: datetime.datetime
    online: bool = True
    """Whether the node itself could be reached; its VMs may run even if not."""
    healthy: bool = True
    health: str = "ok"
    """Why it isn't healthy, in a sentence."""
    hypervisor_type: str = "QEMU"
    hypervisor_version: str = ""
    host_ip: str = ""
    architecture: str = "x86_64"
    cpu_model: str = ""
    cpu_vendor: str = ""
    cpu_sockets: int = 1
    cpu_cores: int = 1
    cpu_flags: tuple[str, ...] = ()
    vcpus: int = 0
    memory_mib: int = 0
    disk_gib: int = 0
    memory_used_mib: int = 0
    disk_used_gib: int = 0
    cpu_load: float = 0.0
    """Share of all cores that is busy, 0 to 1: weighs, never counts."""
    uptime_seconds: int = 0
    cpu_allocation_ratio: float = 1.0
    ram_allocation_ratio: float = 1.0
    disk_allocation_ratio: float = 1.0
    reserved_vcpus: int = 0
    reserved_memory_mib: int = 0
    reserved_disk_gib: int = 0
    running_vms: int = 0
    vm_storage: str = ""
    """Where root disks go."""
    storages: tuple[StorageFacts, ...] = ()
    bridges: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    """Ids of the images that it can build from."""
    cached_images: tuple[str, ...] = ()
    """Ids of the images that it holds a ready template of."""
    traits: tuple[str, ...] = ()
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    """Ways that were probed: linked_clone, full_clone, import_from, upload …"""


@dataclass(frozen=True)
class VmFacts:
    """One VM as the bulk observation saw it; whose it is, the record and its marks say."""

    vmid: int
    node: str
    power_state: int
    server_uuid: str | None = None


@dataclass(frozen=True)
class Sightings:
    """VMs of one cluster as one look saw them: those that differ from what was told last, or all.

    A look costs the cluster the same however many VMs there are, and so does what is told of it:
    a message holds a bounded number of VMs and is compared with the record in one query.
    """

    worker: str
    cluster: str
    seen_at: datetime.datetime
    """When the look began, by the worker's clock."""
    nodes: tuple[str, ...] = ()
    """Nodes that are online."""
    whole: bool = False
    """Whether the whole cluster answered, this time and the time before: absence means gone."""
    vms: tuple[VmFacts, ...] = ()
    gone: tuple[int, ...] = ()
    """VMIDs that were there and were in neither of the last two looks."""
    low: int | None = None
    high: int | None = None
    """``vms`` are all that there are from this VMID to that; None: they are just some."""


@dataclass(frozen=True)
class NicFacts:
    """One network interface as a VM's configuration names it."""

    mac: str
    bridge: str
    vlan: int | None = None
    ip: str | None = None
    """The fixed address that the hypervisor's own cloud-init gives it, where it does."""


@dataclass(frozen=True)
class Inspection:
    """One VM, looked at closely; nothing was changed."""

    vmid: int
    exists: bool = False
    node: str = ""
    kind: str = "vm"
    """``vm``, ``container`` or ``template``."""
    ours: bool = False
    """All marks name the server that was asked about."""
    marked_by: str | None = None
    """The server whose mark it carries."""
    name: str = ""
    lock: str | None = None
    power_state: int = 0
    vcpus: int = 0
    memory_mib: int = 0
    disk_gib: int = 0
    """All its disks together, rounded up."""
    smbios_uuid: str | None = None
    nics: tuple[NicFacts, ...] = ()
    failure: Failure | None = None
    """Why it could not be looked at; then nothing else is known."""


@dataclass(frozen=True)
class ClusterFacts:
    """What is common to a cluster's hosts."""

    cluster: str
    version: str
    quorate: bool
    images: tuple[ImageFacts, ...] = ()
    vmid_low: int = 0
    vmid_high: int = 0


@dataclass(frozen=True)
class Heartbeat:
    """One worker's report of itself, its hosts and its work.

    It is sent from the worker's own message queue (a tick that it consumed), so it proves that
    the worker consumes, not only that its process lives.
    """

    worker: str
    sent_at: datetime.datetime
    hosts: tuple[str, ...]
    """Hosts whose agents live in this worker."""
    facts: tuple[HostFacts, ...] = ()
    """Facts that are new or changed since the last heartbeat, or all after ``announce``."""
    clusters: tuple[ClusterFacts, ...] = ()
    working: tuple[Working, ...] = ()
    version: str = ""


# --- scheduling ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Requested:
    """What one server asks of a host."""

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
    ignore_hosts: tuple[str, ...] = ()
    force_host: str | None = None
    hints: Mapping[str, Any] = field(default_factory=dict)
    group: GroupFacts | None = None
    """Its server group."""
    until: datetime.datetime | None = None
    """When who asks gives up waiting: nothing may be claimed after it."""
    least_memory_mib: int = 0
    """What the image needs."""
    least_disk_gib: int = 0


@dataclass(frozen=True)
class Alternate:
    """A host that would do as well."""

    host: str
    uuid: str
    score: float


@dataclass(frozen=True)
class Change:
    """A field of ``Requested`` as it was asked, and as it would have worked."""

    field: str
    asked: Any
    works: Any


@dataclass(frozen=True)
class Suggestion:
    """The smallest change to a request for which a host would have been found."""

    changes: tuple[Change, ...]
    hosts: int
    """How many hosts would do."""
    host: str
    """The one that needs the least change."""


@dataclass(frozen=True)
class Decision:
    """What the scheduler decided for one server, and why: stored under the request ID."""

    server_uuid: str
    host: str | None
    """The chosen and claimed host; None: nowhere."""
    uuid: str | None = None
    alternates: tuple[Alternate, ...] = ()
    considered: int = 0
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """filter → {host: reason with numbers}."""
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """host → {weigher: weighted score}, best hosts first, capped."""
    claims: tuple[Mapping[str, str], ...] = ()
    """Tries to claim, in order: {host, result}."""
    reason: str | None = None
    """Why nowhere, and what would have worked, in two sentences."""
    suggestion: Suggestion | None = None
    seconds: float = 0.0

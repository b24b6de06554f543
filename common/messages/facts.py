"""What agents report about hosts, clusters and VMs."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from common.messages.queues import Queues
from common.messages.reports import Failure, Working
from common.resources.states import ResourceType

#: what pins a VM to its node, unless somebody takes it out before, as a move of ours does
CONFIG_DRIVE = "its config drive"
#: above the highest VMID: what the last message of all VMs of a cluster ends with
LAST = 2**31 - 1


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
    """That of an upload says whose it is (``common.resources.image_files.listed``)."""
    name: str
    volid: str
    size_bytes: int
    disk_format: str
    storage: str
    created_at: datetime.datetime | None = None
    virtual_size_bytes: int | None = None


@dataclass(frozen=True)
class HaRule:
    """An HA rule of the cluster that binds guests to nodes, as it applies to one host."""

    name: str
    strict: bool
    """Whether guests may run only on its nodes."""
    nodes: int
    """The number of its nodes."""
    priority: int | None
    """The host's priority, the higher the better; None: it isn't one of its nodes."""
    repels: tuple[int, ...] = ()
    """The VMs that it binds to other nodes, by VMID."""


#: the health of a host without problems
WELL = "ok"


@dataclass(frozen=True)
class HostFacts:
    """All facts of one compute host."""

    host: str
    cluster: str
    node: str
    uuid: str
    """The UUID of its resource provider and hypervisor: it never changes."""
    worker: str
    """The agent process that takes its commands: the server name on the ``compute`` topic."""
    availability_zone: str
    observed_at: datetime.datetime
    online: bool = True
    """Whether the node itself answers; its VMs may run even if not."""
    healthy: bool = True
    health: str = WELL
    """Why it isn't healthy, or what of it can't be read, in a sentence."""
    hypervisor_type: str = "QEMU"
    hypervisor_version: str = ""
    host_ip: str = ""
    architecture: str = "x86_64"
    machine_version: str = ""
    """The newest version of machine types that it has, e.g. ``10.1``; empty: unknown."""
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
    """Share of all cores that is busy, 0 to 1: used by weighers only."""
    uptime_seconds: int = 0
    cpu_allocation_ratio: float = 1.0
    ram_allocation_ratio: float = 1.0
    disk_allocation_ratio: float = 1.0
    reserved_vcpus: int = 0
    reserved_memory_mib: int = 0
    reserved_disk_gib: int = 0
    running_vms: int = 0
    vm_storage: str = ""
    """The storage for root disks."""
    storages: tuple[StorageFacts, ...] = ()
    bridges: tuple[str, ...] = ()
    bridge_vlans: Mapping[str, str] = field(default_factory=dict)
    """VLAN tags of bridges that don't take all: ``2-99,200``; empty: none."""
    unready_bridges: Mapping[str, str] = field(default_factory=dict)
    """Vnets that are missing, and why."""
    zones: tuple[str, ...] = ()
    """SDN zones of the node; that of plain bridges is not among them."""
    ha_rules: tuple[HaRule, ...] = ()
    """All rules of its cluster's high availability."""
    images: tuple[str, ...] = ()
    """Ids of the images that it can build from."""
    cached_images: tuple[str, ...] = ()
    """Ids of the images with a ready template there."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """VMIDs of servers that can't be migrated off it, and why."""
    devices: Mapping[str, int] = field(default_factory=dict)
    """Devices for guests: name of the mapping → number of devices."""
    traits: tuple[str, ...] = ()
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    """Ways that were probed: linked_clone, full_clone, import_from, upload …"""
    web_url: str = ""
    """The hypervisor's own web interface with the node, for administrators; empty: not known."""


@dataclass(frozen=True)
class VmFacts:
    """One VM in a refresh; the record and its marks say who owns it."""

    vmid: int
    node: str
    power_state: int
    server_uuid: str | None = None
    kind: str = "VM"
    """``VM`` or ``container``; of those with a VMID of the band also ``template``."""


@dataclass(frozen=True)
class VmStates:
    """VMs of one cluster as seen by one refresh: those that changed since the last report, or all.

    A refresh costs the cluster the same however many VMs there are, and so does its report: a
    message has a bounded number of VMs and is compared with the record in one query.
    """

    worker: str
    cluster: str
    seen_at: datetime.datetime
    """When the refresh began, by the worker's clock."""
    nodes: tuple[str, ...] = ()
    """Nodes that are online."""
    whole: bool = False
    """Whether the whole cluster answered, this time and the time before: absence means gone."""
    vms: tuple[VmFacts, ...] = ()
    gone: tuple[int, ...] = ()
    """VMIDs that were there before and are in neither of the last two refreshes."""
    unlocked: tuple[int, ...] = ()
    """VMIDs that had a lock in the refresh before, and have none now."""
    eased: tuple[str, ...] = ()
    """Nodes that accept work now and did not before: away, without privileges or quorum."""
    low: int | None = None
    high: int | None = None
    """``vms`` are all from this VMID to that; None: only some."""
    asked: bool | None = None
    """Whether the refresh began after a conductor had asked for it, see ``LookAtAll``; None: the
    worker's release can't be asked."""
    operations: tuple[int, ...] = ()
    """Operations whose commands the worker had when it was asked: carried out, or waiting."""

    def parts(self, most: int) -> Iterator[VmStates]:
        """Yield a report of all VMs in parts, by ranges of VMIDs without a gap; at least one.

        The last one names the operations.
        """
        vms, low = sorted(self.vms, key=lambda vm: vm.vmid), 0
        for start in range(0, max(1, len(vms)), most):
            part = tuple(vms[start : start + most])
            last = start + most >= len(vms)
            high = LAST if last else part[-1].vmid
            operations = self.operations if last else ()
            yield replace(self, vms=part, low=low, high=high, operations=operations)
            low = high + 1


@dataclass(frozen=True)
class MarkedAddress:
    """An address as the mark of a port names it, with what it says of its subnet."""

    ip: str
    cidr: str | None = None
    gateway: str | None = None
    dns: tuple[str, ...] = ()


@dataclass(frozen=True)
class MarkedPort:
    """A port as the description of its server's VM names it."""

    id: str
    mac: str
    network_id: str = ""
    """Empty: the network is a cluster's own, which it has anyway."""
    network_owner: str = ""
    """The network's project; empty as above."""
    addresses: tuple[MarkedAddress, ...] = ()


@dataclass(frozen=True)
class NicFacts:
    """One network interface as a VM's configuration names it."""

    mac: str
    bridge: str
    vlan: int | None = None
    ips: tuple[str, ...] = ()
    """The addresses that the configuration shows: those of the hypervisor's own cloud-init, of
    the port in its description, and those that its filter lets out."""
    port: MarkedPort | None = None
    """The port that the description names; None: it names none."""


@dataclass(frozen=True)
class OwnerMark:
    """Whom a VM's description names, and how far the record of that cloud was."""

    cloud: str
    resource_type: ResourceType
    """A server, a volume, a network, or an image: then the VM is its template."""
    resource_id: str
    epoch: int
    vmid: int = 0
    """The VMID with which it was made: a copy has another one."""


@dataclass(frozen=True)
class OtherVm:
    """A VM or container that the record doesn't know."""

    vmid: int
    node: str
    kind: str = "VM"
    """As in ``VmFacts``."""
    nics: tuple[NicFacts, ...] = ()
    mark: OwnerMark | None = None
    """None: it has no mark with an epoch, or its marks don't agree."""
    unread: bool = False
    """Whether it could not be read, as while its node is away; then nothing is known of it."""


@dataclass(frozen=True)
class Inspection:
    """A close look at one VM; nothing was changed."""

    vmid: int
    exists: bool = False
    node: str = ""
    kind: str = "vm"
    """``vm``, ``container`` or ``template``."""
    ours: bool = False
    """All marks name the given server."""
    marked_by: str | None = None
    """The server in its mark."""
    cloud: str | None = None
    """The cloud in its mark."""
    name: str = ""
    lock: str | None = None
    power_state: int = 0
    vcpus: int = 0
    memory_mib: int = 0
    disk_gib: int = 0
    """The sum of its disks, rounded up."""
    smbios_uuid: str | None = None
    nics: tuple[NicFacts, ...] = ()
    unsuspendable: str | None = None
    """Why its memory can't be saved to disk; None: nothing is known to prevent it."""
    unstarted: bool = False
    """Whether its build has made all of it, and was never allowed to start it."""
    failure: Failure | None = None
    """Why it could not be looked at; then nothing else is known."""


@dataclass(frozen=True)
class HaService:
    """A VM under Proxmox VE's high availability, as the HA manager reports it."""

    vmid: int
    node: str
    """The VM's node according to the manager."""
    state: str
    """What the manager does with it: ``started``, ``fence``, ``recovery``, ``error`` …"""
    wanted: str
    """The requested state: ``started``, ``stopped``, ``disabled``."""
    online: bool
    """Whether the cluster sees that node online."""

    @property
    def is_recovered(self) -> bool:
        """Return whether the manager recovers it when its node is lost (pve-ha-manager)."""
        return self.wanted in ("started", "stopped") and self.state != "error"


@dataclass(frozen=True)
class VnetFacts:
    """An SDN vnet of a cluster."""

    vnet: str
    zone: str
    tag: int | None = None
    """Its VNI, or VLAN tag."""
    network_id: str = ""
    """The network that its alias names, of any cloud; empty: none."""


@dataclass(frozen=True)
class ClusterFacts:
    """The facts common to a cluster's hosts."""

    cluster: str
    version: str
    quorate: bool
    images: tuple[ImageFacts, ...] = ()
    vmid_low: int = 0
    vmid_high: int = 0
    vnets: tuple[VnetFacts, ...] = ()
    """All applied SDN vnets, made by anybody."""
    unfiltered: str = "its agents don't say whether they can"
    """Why ports can't be filtered there, the end of a sentence; empty: they can."""


@dataclass(frozen=True)
class Heartbeat:
    """One worker's report of itself, its hosts and its work.

    It is sent from the worker's own message queue (a tick that it consumed), so it proves that
    the worker consumes, not only that its process lives.
    """

    worker: str
    """With its tenure."""
    sent_at: datetime.datetime
    hosts: tuple[str, ...]
    """Hosts whose agents live in this worker; one with many names them in several messages."""
    facts: tuple[HostFacts, ...] = ()
    """Facts that are new or changed since the last heartbeat, or all after ``announce``."""
    clusters: tuple[ClusterFacts, ...] = ()
    working: tuple[Working, ...] = ()
    version: str = ""
    published: bool = False
    """The worker publishes these facts to placement in any case; nobody needs to ask for it."""
    left: tuple[str, ...] = ()
    """Of these hosts, those whose nodes have left their cluster: they are never registered."""
    queues: Queues | None = None
    """What runs and waits on the hosts that it names; None: the worker's release doesn't say."""

"""The inventory of a cluster, which agents return to the audit."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from common.messages.facts import NicFacts, OwnerMark


@dataclass(frozen=True)
class SeenReference:
    """A disk of another VM of our band that a VM's configuration names."""

    vmid: int
    """The VM that names it."""
    node: str
    option: str
    """``scsi1``, ``unused0`` …"""
    volid: str


@dataclass(frozen=True)
class SeenSnapshot:
    """A snapshot of a VM."""

    name: str
    whole: bool = True
    """Whether it was taken to its end."""
    volumes: tuple[str, ...] = ()
    """Disks of other VMs of our band in it, as far as it was read."""
    snapshot_id: str | None = None
    """The snapshot of the holder's volume that its description names."""
    user_id: str = ""
    """The user who had it taken, by its description."""
    taken_at: datetime.datetime | None = None


@dataclass(frozen=True)
class SeenDrive:
    """A disk that a VM's configuration names, no CD."""

    slot: str
    volid: str
    lost: bool = False
    """Whether it is of the VM's own VMID, and its storage, which was read, doesn't list it."""


@dataclass(frozen=True)
class SeenVm:
    """A VM or container in our band of VMIDs, or with our mark."""

    vmid: int
    node: str
    kind: str = "qemu"
    """``qemu`` or ``lxc``: both share one range of ids."""
    name: str = ""
    status: str = ""
    """``running``, ``stopped``, ``unknown`` …, as the cluster lists it."""
    template: bool = False
    vcpus: int | None = None
    memory_mib: int | None = None
    lock: str | None = None
    lock_live: bool = False
    """A task that runs now explains the lock."""
    maker: str | None = None
    """The task of our token that left a half-created VM, if there is one on record."""
    read: bool = False
    """Whether its configuration was read: only then the fields below mean anything."""
    server_uuid: str | None = None
    """The server that its description names."""
    image_id: str | None = None
    """The image whose template it is by its description."""
    cloud: str | None = None
    """The cloud that its description names."""
    mark: OwnerMark | None = None
    """Its mark, with the epoch of the record that wrote it."""
    project_id: str | None = None
    """The project for which it was made, by its description."""
    user_id: str | None = None
    proven: bool = False
    """All its marks agree: the ownership fence would pass."""
    smbios_uuid: str | None = None
    """Its SMBIOS UUID in lower case, if its configuration has one."""
    volume_id: str | None = None
    """The volume whose holder it is by its description."""
    snapshot_of: str | None = None
    """The volume whose snapshot, which is a copy, it holds by its description."""
    held: str | None = None
    """The disk that a volume's holder has, also while a server uses it; None: it has none."""
    parked: bool = False
    """Whether a holder's disk rests, and is protected."""
    nics: tuple[NicFacts, ...] | None = None
    """Its interfaces; None: not read, or by an agent of an older release."""
    references: tuple[SeenReference, ...] | None = None
    """Disks of other VMs that it names; None as above."""
    snapshots: tuple[SeenSnapshot, ...] | None = None
    """None: not read, or they could not be."""
    drives: tuple[SeenDrive, ...] | None = None
    """Its disks; None: not read."""
    adopted: bool = False
    """Whether it was made by somebody else: its disks may be anywhere."""
    unstarted: bool = False
    """Whether its build has made all of it, and was never allowed to start it."""


@dataclass(frozen=True)
class SeenVolume:
    """A disk with a VMID of our band, or a config drive of ours."""

    volid: str
    storage: str
    node: str
    """Where it is, or the node through which a shared storage was listed."""
    vmid: int
    shared: bool = False
    size_bytes: int = 0
    created_at: datetime.datetime | None = None
    server_uuid: str | None = None
    """For a config drive: the server in its name."""
    ours: bool = False
    """For a disk whose VMID has no VM, or a VM that was never finished: a task of our token on
    record made it."""


@dataclass(frozen=True)
class SeenImageFile:
    """A file that has the data of an uploaded image, by its name."""

    volid: str
    storage: str
    node: str
    """Where it is, or the node through which a shared storage was listed."""
    image_id: str
    cloud: str
    shared: bool = False
    size_bytes: int = 0
    project_id: str = ""
    """The image's owner, by the name; empty: it names none."""
    digest: str = ""
    """The beginning of the SHA-512 of its data."""


@dataclass(frozen=True)
class SeenBackup:
    """An archive whose notes name a backup of some cloud's."""

    volid: str
    storage: str
    node: str
    """Where it is, or the node through which a shared storage was listed."""
    backup_id: str
    cloud: str
    shared: bool = False
    size_bytes: int = 0
    mark: OwnerMark | None = None
    """None: its notes name no epoch."""
    project_id: str = ""
    """What its notes say besides: whose it is, and the volume."""
    user_id: str = ""
    volume_id: str = ""
    size_gib: int = 0
    """The volume's."""
    vmid: int = 0
    """The VMID by which it is named."""
    created_at: datetime.datetime | None = None


@dataclass(frozen=True)
class SeenReplica:
    """A node to which a replication job copies a VM's disks."""

    vmid: int
    node: str


@dataclass(frozen=True)
class SeenAffinity:
    """A strict server group as it is in the hypervisor."""

    cloud: str
    group: str
    managed: tuple[int, ...] = ()
    """The VMIDs that are resources for it."""
    members: tuple[int, ...] = ()
    """The VMIDs in its rule, added by anybody."""
    rule: bool = False
    """Whether there is a rule."""


@dataclass(frozen=True)
class SeenVnet:
    """An SDN vnet that says that it is a network's."""

    vnet: str
    zone: str
    network_id: str
    cloud: str
    mark: OwnerMark | None = None
    """None: its alias names no epoch."""
    project_id: str = ""
    """The network's, by its alias."""
    tag: int | None = None
    """Its VNI."""


@dataclass(frozen=True)
class SeenTag:
    """A VLAN tag that an interface of somebody else's VM has."""

    vmid: int
    node: str
    bridge: str
    vlan: int


@dataclass(frozen=True)
class ClusterInventory:
    """Everything in a cluster that may be ours, read in bulk."""

    cluster: str
    vms: tuple[SeenVm, ...] = ()
    volumes: tuple[SeenVolume, ...] = ()
    unseen: tuple[str, ...] = ()
    """What could not be read, a sentence each: absence there means nothing."""
    short: bool = False
    """VMs or storages may be hidden from the token: absence from lists means nothing."""
    unseen_nodes: tuple[str, ...] = ()
    """Nodes that could not be read completely."""
    affinity: tuple[SeenAffinity, ...] = ()
    writes_affinity: bool = False
    """Whether strict server groups are to be written there."""
    affinity_seen: bool = False
    """Whether ``affinity`` is complete."""
    replicas: tuple[SeenReplica, ...] | None = None
    """None: it is not known which copies belong to replication jobs."""
    image_files: tuple[SeenImageFile, ...] | None = None
    """None: they were not looked for, as by an agent of an older release."""
    vnets: tuple[SeenVnet, ...] | None = None
    """None: they could not be read, or were not looked for."""
    other_tags: tuple[SeenTag, ...] | None = None
    """Of VMs that aren't ours, as far as they were read so far; None: they were not looked at."""
    other_tags_complete: bool = False
    """Whether all of those VMs were read since the agent began."""
    backups: tuple[SeenBackup, ...] | None = None
    """None: they were not looked for, as by an agent of an older release."""
    other_references: tuple[SeenReference, ...] | None = None
    """Disks of our band that those VMs name."""

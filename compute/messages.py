"""What an agent answers when it is asked for all that is in a cluster: the audit's facts."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True)
class SeenVm:
    """A VM or container in our band of VMIDs, or with our mark."""

    vmid: int
    node: str
    kind: str = "qemu"
    """``qemu`` or ``lxc``: both take their ids from one pool."""
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
    """The task of our token that left a half-created VM, where there is one on record."""
    read: bool = False
    """Whether its configuration was read: only then the marks below say anything."""
    server_uuid: str | None = None
    """The server that its description names."""
    image_id: str | None = None
    """The image whose template its description says it is."""
    cloud: str | None = None
    """The cloud that its description names."""
    proven: bool = False
    """All its marks agree: the ownership fence would let us pass."""
    smbios_uuid: str | None = None
    """Its SMBIOS UUID in lower case, where its configuration names one."""


@dataclass(frozen=True)
class SeenVolume:
    """A disk that carries a VMID of our band, or a config drive of ours."""

    volid: str
    storage: str
    node: str
    """Where it is, or through which node a shared storage was looked at."""
    vmid: int
    shared: bool = False
    size_bytes: int = 0
    created_at: datetime.datetime | None = None
    server_uuid: str | None = None
    """Of a config drive: the server that its name names."""
    ours: bool = False
    """Of a disk whose VMID no VM has: a task of our token on record made it."""


@dataclass(frozen=True)
class SeenAffinity:
    """A strict server group as it is written in the hypervisor."""

    cloud: str
    group: str
    managed: tuple[int, ...] = ()
    """The VMIDs that were handed over for it."""
    members: tuple[int, ...] = ()
    """The VMIDs that its rule names, whoever put them there."""
    rule: bool = False
    """Whether there is a rule."""


@dataclass(frozen=True)
class ClusterInventory:
    """All that is in a cluster and may be ours, seen in bulk."""

    cluster: str
    vms: tuple[SeenVm, ...] = ()
    volumes: tuple[SeenVolume, ...] = ()
    unseen: tuple[str, ...] = ()
    """What could not be looked at, a sentence each: absence there means nothing."""
    short: bool = False
    """The token does not see all VMs or storages: what isn't listed may be there all the same."""
    unseen_nodes: tuple[str, ...] = ()
    """Nodes of which something could not be looked at."""
    affinity: tuple[SeenAffinity, ...] = ()
    writes_affinity: bool = False
    """Whether strict server groups shall be written down there."""
    affinity_seen: bool = False
    """Whether ``affinity`` is all that there is."""

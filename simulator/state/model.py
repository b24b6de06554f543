"""The objects of a cluster, as plain data. Sizes in bytes, times in seconds since the epoch."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

GIB = 1 << 30
MIB = 1 << 20
KIB = 1 << 10
TB = 10**12

ConfigMap = dict[str, str]


@dataclass
class Node:
    """A node and its state."""

    name: str
    nodeid: int
    ip: str
    cpus: int = 64
    memory: int = 512 * GIB
    up: bool = True
    proxy: str = "up"
    daemon: str = "up"
    booted: float = field(default_factory=time.time)
    bridges: list[str] = field(default_factory=lambda: ["vmbr0", "vmbr1"])
    last_pid: int = 1000
    sdn_version: int = 0
    gateway: str = ""
    certificate_days: int = 730
    left: bool = False
    """Whether it was taken out of the cluster: its folder may still be there."""
    shown: dict[str, Any] = field(default_factory=dict)
    """What is shown otherwise: `clock` (seconds ahead), `version`, `flags`, `model`, `services`
    (name → state), and `interfaces` (name → values of `GET …/network`)."""


@dataclass
class Storage:
    """A configured storage; `capacity` is bytes, per node when not shared."""

    id: str
    type: str
    path: str
    content: list[str]
    shared: bool
    capacity: int
    nodes: list[str] = field(default_factory=list)
    disabled: bool = False
    options: dict[str, str] = field(default_factory=dict)

    def on(self, node: str) -> bool:
        """Return whether the storage is available on a node."""
        return not self.nodes or node in self.nodes


@dataclass
class Volume:
    """A file on a storage. `node` is empty on shared storages; `parent` names the base volume."""

    storage: str
    node: str
    name: str
    content: str
    format: str
    size: int
    used: int
    vmid: int = 0
    parent: str = ""
    virtual_size: int = 0
    ctime: int = field(default_factory=lambda: int(time.time()))
    checksum: str = ""
    protected: bool = False
    notes: str = ""
    data: str = ""
    """What a guest, or who put the volume there, has written; copies have it too."""
    kept: dict[str, str] = field(default_factory=dict)
    """Name of each snapshot, in their order → what was written then."""
    kept_sizes: dict[str, int] = field(default_factory=dict)
    """Name of each snapshot → the size then."""

    @property
    def volid(self) -> str:
        """The volume id in configurations and lists."""
        prefix = f"{self.parent}/" if self.parent else ""
        return f"{self.storage}:{prefix}{self.name}"

    @property
    def base(self) -> bool:
        """Return whether this is a template's read-only image."""
        return self.name.rpartition("/")[2].startswith("base-")


@dataclass
class Migration:
    """The memory of a running migration."""

    total: int
    transferred: int = 0
    cancelled: bool = False
    stopped: bool = False
    """Whether the guest was paused, so that it converges at once."""


@dataclass
class Snapshot:
    """A saved state of a configuration."""

    name: str
    config: ConfigMap
    snaptime: int
    parent: str = ""
    description: str = ""
    vmstate: str = ""
    snapstate: str = ""
    """`delete` of one whose deletion has begun and not ended."""


@dataclass
class Vm:
    """A virtual machine: its configuration file and its running process."""

    vmid: int
    node: str
    config: ConfigMap
    pending: ConfigMap = field(default_factory=dict)
    pending_delete: list[str] = field(default_factory=list)
    pending_force: list[str] = field(default_factory=list)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    status: str = "stopped"
    qmp: str = "stopped"
    pid: int = 0
    started: float = 0.0
    agent_ready: float = 0.0

    @property
    def running(self) -> bool:
        """Return whether QEMU runs, paused or not."""
        return self.status == "running"

    @property
    def lock(self) -> str:
        """The lock in the configuration, or empty."""
        return self.config.get("lock", "")

    @property
    def template(self) -> bool:
        """Return whether the VM is a template."""
        return self.config.get("template") == "1"

    def text(self) -> str:
        """Return the configuration file's text in the cluster file system."""
        parts = ["".join(_lines(self.config))]
        if self.pending or self.pending_delete:
            pending = dict(self.pending)
            if self.pending_delete:
                pending["delete"] = ",".join(self.pending_delete)
            parts.append("[PENDING]\n" + "".join(_lines(pending)))
        for name, snapshot in sorted(self.snapshots.items()):
            parts.append(f"[{name}]\n" + "".join(_lines(snapshot.config)))
        return "\n".join(parts)

    def digest(self) -> str:
        """Return the checksum that detects concurrent updates."""
        return hashlib.sha1(self.text().encode(), usedforsecurity=False).hexdigest()


def _lines(config: ConfigMap) -> list[str]:
    lines = []
    description = config.get("description")
    if description:
        lines += [f"#{line}\n" for line in description.split("\n")]
    lines += [f"{key}: {config[key]}\n" for key in sorted(config) if key != "description"]
    return lines


@dataclass
class PciMapping:
    """A name for PCI devices; `map` has one property string per node."""

    id: str
    map: list[str]
    description: str = ""
    mdev: bool = False


@dataclass
class Pool:
    """A resource pool."""

    poolid: str
    comment: str = ""
    vms: list[int] = field(default_factory=list)
    storages: list[str] = field(default_factory=list)


@dataclass
class Task:
    """A worker and its log. `user` is the bare user, `tokenid` the token that asked, if any."""

    upid: str
    node: str
    pid: int
    pstart: int
    starttime: int
    type: str
    id: str
    user: str
    tokenid: str = ""
    endtime: int = 0
    exitstatus: str = ""
    log: list[str] = field(default_factory=list)
    warnings: int = 0

    @property
    def running(self) -> bool:
        """Return whether the worker runs."""
        return not self.exitstatus

    @property
    def authid(self) -> str:
        """User and token as one name."""
        return f"{self.user}!{self.tokenid}" if self.tokenid else self.user

"""Commands to agents.

A command carries everything that was reserved for it (node, VMID, names, addresses), so an agent
needs no journal and no database: it converges the VMID to what is asked, or to absent.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
class StrictGroup:
    """The server group of a server, if its policy is strict."""

    uuid: str
    apart: bool
    """Anti-affinity; else affinity."""
    max_per_host: int = 1


@dataclass(frozen=True)
class Command:
    """The head of every command. Sending it twice does no harm: same operation, same answer."""

    operation_id: int
    attempt: int
    server_uuid: str
    placed: Placed
    deadline: datetime.datetime
    """When the agent shall give up and report so."""
    sent_at: datetime.datetime | None = field(default=None, kw_only=True)
    """When this message went out."""


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
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    group: StrictGroup | None = None
    image_properties: Mapping[str, str] = field(default_factory=dict)
    """As they were when the server was created; both say what hardware the guest has."""


@dataclass(frozen=True)
class CacheImage(Build):
    """Have the image of a build where it can be cloned, ahead of any build; nothing else is made.

    It is about no server, as ``RetireTemplate``; its VMID is the template's.
    """


@dataclass(frozen=True)
class RetireTemplate(Command):
    """Remove an image's cached template, if it is ours and no clone depends on it.

    It is about no server: ``server_uuid`` is ``<cluster>/<VMID>``.
    """

    image_id: str = ""
    cloud: str = ""


@dataclass(frozen=True)
class Destroy(Command):
    """Make the VMID absent, if it is provably ours: stop, purge, see config and volumes gone."""

    graceful: bool = False
    drive_only: bool = False
    """Only the config drive, and only if the VM that has the VMID, whosever, doesn't use it."""
    stopped_on: str | None = None
    """Only a VM that is still stopped on this node, as it was seen, and only volumes that no
    VM's configuration names. None: wherever it is, and if it runs."""


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
    again: bool = False
    """The mark was there and was edited: it is written again, where the SMBIOS UUID is the
    server's and no task on record says that others made the VM."""

"""The API's requests to the conductor, which checks again what may have changed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common import codec, local_disks
from common.local_disks import LocalDisk
from common.messages.commands import GuestFile
from common.messages.scheduling import Decision, ImageHome
from common.security_rules import Rule

#: how data of an image are imported; Glance's names
DIRECT, DOWNLOAD = "glance-direct", "web-download"


@dataclass(frozen=True)
class FlavorSnapshot:
    """A flavor as it is when a server is created from it; sizes in MiB and GiB."""

    id: str
    """The flavorid that users see."""
    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    ephemeral_gib: int = 0
    swap_mib: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    volume_backed: bool = False
    """Whether its server boots from a volume, and has no root disk of this size."""
    local_disks: tuple[LocalDisk, ...] = ()
    """Those beside the root disk that its server has."""

    @property
    def local_gib(self) -> int:
        """Return what the disks beside the root disk claim."""
        if not self.local_disks:
            return 0
        return local_disks.claim_gib(self.ephemeral_gib, self.swap_mib)


def local_disks_of(flavor: Mapping[str, Any]) -> tuple[LocalDisk, ...]:
    """Return a server's disks beside the root disk by its ``FlavorSnapshot``."""
    return tuple(codec.load(LocalDisk, one) for one in flavor.get("local_disks") or ())


def claimed_gib(flavor: Mapping[str, Any]) -> int:
    """Return the disk that a server claims by its ``FlavorSnapshot``, as Nova counts it."""
    return root_gib(flavor) + _local_gib(flavor)


def _local_gib(flavor: Mapping[str, Any]) -> int:
    # A server that was made without such disks, or adopted, doesn't claim them.
    if not flavor.get("local_disks"):
        return 0
    sizes = int(flavor.get("ephemeral_gib") or 0), int(flavor.get("swap_mib") or 0)
    return local_disks.claim_gib(*sizes)


def root_gib(flavor: Mapping[str, Any]) -> int:
    """Return the size of a server's own root disk by its ``FlavorSnapshot``; a volume is none."""
    return 0 if flavor.get("volume_backed") else int(flavor["disk_gib"])


@dataclass(frozen=True)
class BlockDevice:
    """A volume that a new server gets: one that is there, or one that is made with it."""

    volume_id: str | None = None
    """One that is there; the rest says what is made."""
    size_gib: int = 0
    type_id: str | None = None
    """None: the default type."""
    image_id: str | None = None
    snapshot_id: str | None = None
    boot: bool = False
    """Whether it is the root disk."""
    delete_on_termination: bool = False
    tag: str | None = None


@dataclass(frozen=True)
class RequestedNetwork:
    """One requested interface: a network, and perhaps an address in it; or a port."""

    network_id: str
    fixed_ip: str | None = None
    tag: str | None = None
    port_id: str | None = None
    """A port of the user's; then the network is its."""


@dataclass(frozen=True)
class FixedIp:
    """An address that a port is to have; None: any of the subnet's, of any subnet."""

    subnet_id: str | None = None
    ip_address: str | None = None


@dataclass(frozen=True)
class NewNetwork:
    """A network to be made; without type, bridge and VLAN tag these are chosen."""

    project_id: str
    name: str = ""
    description: str = ""
    mtu: int | None = None
    shared: bool = False
    """Whether all projects may use it."""
    external: bool = False
    network_type: str | None = None
    """``vlan`` or ``flat``."""
    bridge: str | None = None
    vlan: int | None = None
    availability_zone_hints: tuple[str, ...] = ()
    is_default: bool = False
    """Whether it is the external network that is meant where none is named."""
    admin_state_up: bool = True
    port_security: bool | None = None
    """Whether new ports on it are filtered; None: they are."""


@dataclass(frozen=True)
class NewShare:
    """What another project, or all (``*``), may use (Neutron's RBAC policy)."""

    project_id: str
    """Who shares it."""
    object_id: str
    target: str
    object_type: str = "network"
    """``network``, ``security_group`` or ``address_group``."""


@dataclass(frozen=True)
class NewSubnet:
    """A subnet to be made."""

    project_id: str
    network_id: str
    name: str = ""
    description: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """What ``conductor.store.subnet_rules`` reads: ``cidr``, ``ip_version`` and what is given of
    ``gateway_ip``, ``allocation_pools`` ([first, last] each), ``host_routes`` ([destination, next
    hop] each), ``dns_nameservers``, ``enable_dhcp`` and the IPv6 modes."""


@dataclass(frozen=True)
class NewPort:
    """A port that a user makes."""

    project_id: str
    network_id: str
    name: str = ""
    description: str = ""
    mac: str | None = None
    """None: a random one."""
    fixed_ips: tuple[FixedIp, ...] | None = None
    """None: any address, where the network has a subnet; one at the most."""
    any_address: bool = False
    """Whether the address may be outside of the pool."""
    tags: tuple[str, ...] = ()
    security_groups: tuple[str, ...] | None = None
    """None: the project's default one."""
    port_security: bool | None = None
    """False: it is in no group, and nothing of it is filtered; None: as its network says."""
    address_pairs: tuple[AddressPair, ...] = ()
    admin_state_up: bool = True
    binding_host: str = ""
    """The host of the server to come; empty: any."""


@dataclass(frozen=True)
class AddressPair:
    """An address, or a range, that a port may use besides its own."""

    ip_address: str
    mac_address: str | None = None
    """None: the port's; another is an administrator's to allow."""


@dataclass(frozen=True)
class NewImage:
    """An image that a user makes, without data; empty: the user did not say."""

    project_id: str
    id: str | None = None
    """Chosen by the user, lower case with dashes; None: any."""
    name: str = ""
    visibility: str = "shared"
    disk_format: str = ""
    container_format: str = ""
    min_disk_gib: int = 0
    min_ram_mib: int = 0
    protected: bool = False
    hidden: bool = False
    tags: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MetadefNamespace:
    """A namespace of metadata definitions, as Glance has them."""

    name: str
    project_id: str
    """Its owner."""
    display_name: str | None = None
    description: str | None = None
    visibility: str = "private"
    protected: bool = False


@dataclass(frozen=True)
class MetadefItem:
    """What a namespace defines: of a kind it has one of a name."""

    kind: str
    """``property``, ``object``, ``tag`` or ``resource_type``."""
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    """What else is said of it, in Glance's words."""


@dataclass(frozen=True)
class ImageData:
    """Data that a user sent for an image, on the host of the API that took them."""

    url: str
    """Where agents fetch them, by ranges."""
    token: str = field(repr=False)
    """Proves that they may."""
    size_bytes: int
    virtual_size_bytes: int
    """Of the disk that they hold."""
    disk_format: str
    md5: str
    sha512: str


@dataclass(frozen=True)
class ImportTask:
    """An import of an image: data that were staged, or that are downloaded."""

    id: str
    method: str
    """As in the API."""
    user_id: str
    request_id: str
    uri: str | None = None
    """Where the data are downloaded from."""
    message: str = ""
    """Why it failed; empty: it did not."""
    staged: ImageData | None = None
    """What was staged, until the import begins."""


@dataclass(frozen=True)
class ImageEdit:
    """One step of a change to an image."""

    op: str
    """``add``, ``replace`` or ``remove``."""
    name: str
    """An attribute as in the API, or a property."""
    value: Any = None


@dataclass(frozen=True)
class NewSecurityGroup:
    """A security group that a user makes."""

    project_id: str
    name: str
    description: str = ""
    stateful: bool = True


@dataclass(frozen=True)
class NewAddressGroup:
    """An address group that a user makes; addresses are prefixes."""

    project_id: str
    name: str = ""
    description: str = ""
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecurityGroupChange:
    """What is to change of a security group; None: it stays."""

    name: str | None = None
    description: str | None = None
    stateful: bool | None = None


@dataclass(frozen=True)
class NewRule:
    """A rule that a group gets."""

    security_group_id: str
    rule: Rule
    description: str = ""


@dataclass(frozen=True)
class NewDefaultRule:
    """A rule that new groups begin with; its remote group may be ``PARENT``, the new one."""

    rule: Rule
    description: str = ""
    used_in_default_sg: bool = False
    """Whether projects' default groups do."""
    used_in_non_default_sg: bool = True
    """Whether all other groups do."""


@dataclass(frozen=True)
class TagChange:
    """What is to change of the tags of a network, subnet, port or security group."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    replace: bool = False
    """Whether only those that are added stay."""


@dataclass(frozen=True)
class PortChange:
    """What is to change of a port; None: it stays."""

    name: str | None = None
    description: str | None = None
    mac: str | None = None
    fixed_ips: tuple[FixedIp, ...] | None = None
    any_address: bool = False
    security_groups: tuple[str, ...] | None = None
    port_security: bool | None = None
    address_pairs: tuple[AddressPair, ...] | None = None
    admin_state_up: bool | None = None
    binding_host: str | None = None
    """Empty: any."""


@dataclass(frozen=True)
class Attachment:
    """An interface that is asked for; a network that isn't named is the only one there is."""

    network_id: str | None = None
    port_id: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None
    any_address: bool = False
    """Whether the address may be outside of the pool."""


@dataclass(frozen=True)
class CreateServers:
    """A ``POST /servers``: one to many servers that differ in name and address only."""

    name: str
    flavor: FlavorSnapshot
    image_id: str
    """Empty: they boot from a volume."""
    image_properties: Mapping[str, str] = field(default_factory=dict)
    least_memory_mib: int = 0
    """The image's minimum disk and memory."""
    least_disk_gib: int = 0
    image_home: ImageHome | None = None
    """Of a server's image; None: import storages have it."""
    min_count: int = 1
    max_count: int = 1
    networks: tuple[RequestedNetwork, ...] = ()
    auto_network: bool = False
    """``networks: auto``, or none given: the only network there is."""
    needs_network: bool = False
    """``networks: auto``: refused if there is no network."""
    description: str | None = None
    hostname: str | None = None
    key_name: str | None = None
    public_key: str | None = None
    key_type: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    user_data: str | None = None
    """Base64."""
    config_drive: bool = False
    """As the user gave it; the guest always has one."""
    auto_disk_config: bool = False
    """As the user gave it, to be shown."""
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    availability_zone: str | None = None
    force_host: str | None = None
    """``ZONE:HOST``, or ``host`` of microversion 2.74: an administrator's choice."""
    security_groups: tuple[str, ...] = ()
    scheduler_hints: Mapping[str, Any] = field(default_factory=dict)
    admin_password: str | None = None
    files: tuple[GuestFile, ...] = ()
    """For the guest, by its config drive."""
    server_group: str | None = None
    """UUID of the group that the servers join."""
    any_address: bool = False
    """Whether ``fixed_ip`` may be outside of the allocation pools."""
    disk_tag: str | None = None
    """The user's name for the root disk, for the guest."""
    volumes: tuple[BlockDevice, ...] = ()

    @property
    def volume_backed(self) -> bool:
        """Return whether they boot from a volume."""
        return any(one.boot for one in self.volumes)


@dataclass(frozen=True)
class RebuildServer:
    """A server that gets a new disk, made from an image."""

    image_id: str
    image_properties: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Other columns of the server that change with it."""
    admin_password: str | None = field(default=None, repr=False)
    files: tuple[GuestFile, ...] = ()
    reimages: bool = False
    """Whether a root disk that is a volume gets the image, too; else it stays as it is."""


@dataclass(frozen=True)
class NewServerImage:
    """A ``createImage``, or a ``createBackup`` where there is a rotation."""

    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    limited: bool = False
    """Whether the quota of metadata counts, as it does up to microversion 2.38."""
    backup_type: str | None = None
    rotation: int = 0
    """How many backups of this type are kept."""


@dataclass(frozen=True)
class CreatedServers:
    """The records that were created, in launch order."""

    reservation_id: str
    uuids: tuple[str, ...]


@dataclass(frozen=True)
class Evacuation:
    """A server of a host that is assumed to be gone, and where it would go."""

    server_uuid: str
    name: str
    decision: Decision
    kept: str = ""
    """Why it can't be moved while its node is gone; empty: it can."""


@dataclass(frozen=True)
class DrainStep:
    """A server of a host that would be drained."""

    server_uuid: str
    name: str
    way: str | None
    """``common.moving.Way``; None: it can't be moved."""
    target: str | None = None
    """Where it would go now; the scheduler decides again as it moves."""
    reason: str | None = None
    """Why it can't be moved, or has nowhere to go."""


@dataclass(frozen=True)
class NewFlavor:
    """A flavor to be created; ``flavorid`` None: the conductor makes a UUID."""

    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    flavorid: str | None = None
    ephemeral_gib: int = 0
    swap_mib: int = 0
    rxtx_factor: float = 1.0
    is_public: bool = True
    description: str | None = None


@dataclass(frozen=True)
class NewServerGroup:
    """A server group to be created; ``policy`` is one of ``common.server_groups.Policy``."""

    project_id: str
    user_id: str
    name: str
    policy: str
    rules: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NewKeyPair:
    """A public key to be stored for a user."""

    user_id: str
    name: str
    type: str
    fingerprint: str
    public_key: str


@dataclass(frozen=True)
class Refused:
    """A request that the API answered with an error."""

    method: str
    path: str
    status: int
    message: str
    """As it was answered."""
    received_at: datetime.datetime
    answered_at: datetime.datetime
    details: Mapping[str, Any] = field(default_factory=dict)
    """Details of the error, and the names of the caller (``db.reads.refusals.ASKED_BY``)."""


@dataclass(frozen=True)
class Adoption:
    """An existing VM that is to become a server."""

    cluster: str
    vmid: int
    project_id: str
    user_id: str
    name: str | None = None
    """None: the VM's name."""
    flavor: FlavorSnapshot | None = None
    """None: a flavor is made from what the VM has."""


@dataclass(frozen=True)
class Healing:
    """How an attempt to heal a finding went."""

    answer: str
    operation_id: int | None
    """The operation that does it."""


@dataclass(frozen=True)
class Adopted:
    """The new record; its states show the progress of the adoption."""

    server_uuid: str
    operation_id: int


@dataclass(frozen=True)
class NewVolume:
    """A volume that is asked for; sizes in GiB."""

    project_id: str
    size_gib: int
    name: str = ""
    description: str | None = None
    type_id: str | None = None
    """None: the default type."""
    availability_zone: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    image_id: str | None = None
    snapshot_id: str | None = None
    source_volume_id: str | None = None
    backup_id: str | None = None
    local_to_server: str | None = None
    """On a storage that this server's host has."""


@dataclass(frozen=True)
class NewVolumeSnapshot:
    """A snapshot of a volume that is asked for."""

    volume_id: str
    name: str = ""
    description: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    in_use: bool = False
    """Whether a server may have the volume."""


@dataclass(frozen=True)
class NewVolumeTransfer:
    """An offer of a volume to another project that is asked for."""

    volume_id: str
    name: str | None = None
    no_snapshots: bool = False
    """Whether the volume's snapshots stay where they are."""


@dataclass(frozen=True)
class OfferedVolume:
    """A transfer that began. The key is known to its reader alone: it isn't kept."""

    transfer_id: str
    auth_key: str = field(repr=False)


@dataclass(frozen=True)
class NewBackup:
    """A backup of a volume that is asked for."""

    volume_id: str
    name: str = ""
    description: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    container: str | None = None
    availability_zone: str | None = None
    snapshot_id: str | None = None
    incremental: bool = False
    force: bool = False
    """Whether a server may have the volume."""


@dataclass(frozen=True)
class VolumeEdit:
    """What changes of a volume's record, or of a snapshot's; None: it stays."""

    name: str | None = None
    description: str | None = None
    clear_description: bool = False
    metadata: dict[str, str] | None = None
    """Added to what there is, unless ``replace_metadata``."""
    replace_metadata: bool = False
    remove_metadata: tuple[str, ...] = ()
    """Raises NotFound for one that isn't there."""
    image_metadata: dict[str, str] | None = None
    remove_image_metadata: str | None = None
    bootable: bool | None = None
    readonly: bool | None = None


@dataclass(frozen=True)
class NewVolumeImage:
    """An image that is made of a volume."""

    name: str
    disk_format: str = "raw"
    visibility: str = "shared"
    protected: bool = False


@dataclass(frozen=True)
class VolumeTypeEdit:
    """A volume type, or what changes of it; None: it stays."""

    name: str | None = None
    description: str | None = None
    is_public: bool | None = None
    extra_specs: dict[str, str] | None = None
    """All of them then."""


@dataclass(frozen=True)
class VolumeWish:
    """A volume that a server is to have."""

    volume_id: str
    tag: str | None = None
    delete_on_termination: bool = False
    mode: str = "rw"


@dataclass(frozen=True)
class AttachedVolume:
    """An attachment that began."""

    attachment_id: str
    slot: int

"""Calls about servers of users."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.context import RequestContext
from common.messages.commands import GuestFile
from common.messages.scheduling import ImageHome
from conductor.rpc.servers.flavors import FlavorSnapshot


@dataclass(frozen=True)
class BlockDevice:
    """A volume that a new server gets: an existing volume, or a volume made with the server."""

    volume_id: str | None = None
    """An existing volume; without it, the next fields describe the volume to make."""
    size_gib: int = 0
    type_id: str | None = None
    """None: the default type."""
    image_id: str | None = None
    snapshot_id: str | None = None
    boot: bool = False
    """Whether it is the root disk."""
    delete_on_termination: bool = False
    tag: str | None = None
    name: str = ""
    """Of a volume to make; empty: as Nova names it. Clients can't choose it."""


@dataclass(frozen=True)
class RequestedNetwork:
    """One requested interface: a network, and perhaps an address in it; or a port."""

    network_id: str
    fixed_ip: str | None = None
    tag: str | None = None
    port_id: str | None = None
    """A port of the user's; then the network is its."""


@dataclass(frozen=True, kw_only=True)
class FirstBoot:
    """What the guest gets at the first boot from its disk; stored nowhere else."""

    admin_password: str | None = field(default=None, repr=False)
    files: tuple[GuestFile, ...] = ()
    """Written by the guest, which has them from its config drive."""


@dataclass(frozen=True, kw_only=True)
class BuildRequest(FirstBoot):
    """What is asked of a build, beyond the server's record and its interfaces."""

    force_host: str | None = None
    """``ZONE:HOST``, or ``host`` of microversion 2.74: an administrator's choice."""
    least_memory_mib: int = 0
    """The image's minimum disk and memory."""
    least_disk_gib: int = 0
    image_home: ImageHome | None = None
    """Of a server's image; None: import storages have it."""
    min_count: int = 1

    def of_build(self) -> dict[str, Any]:
        """Return these fields alone."""
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(BuildRequest)}


@dataclass(frozen=True)
class CreateServers(BuildRequest):
    """A ``POST /servers``: one to many servers that differ in name and address only."""

    name: str
    flavor: FlavorSnapshot
    image_id: str
    """As the servers show it; empty: they boot from a volume, and no image was named."""
    image_properties: Mapping[str, str] = field(default_factory=dict)
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
    security_groups: tuple[str, ...] = ()
    scheduler_hints: Mapping[str, Any] = field(default_factory=dict)
    server_group: str | None = None
    """UUID of the group that the servers join."""
    any_address: bool = False
    """Whether ``fixed_ip`` may be outside of the allocation pools."""
    disk_tag: str | None = None
    """The user's name for the root disk, for the guest."""
    volumes: tuple[BlockDevice, ...] = ()
    uuids: tuple[str, ...] = ()
    """UUIDs that the servers get, one after the other: a repeated create is the same create."""
    fingerprint: str = ""
    """What a client asked for under its own key, in short; empty: it gave no key."""
    member_of: str | None = None
    """The scaling group that counts the servers; clients can't name one."""

    @property
    def volume_backed(self) -> bool:
        """Return whether they boot from a volume."""
        return any(one.boot for one in self.volumes)

    @property
    def root_image_id(self) -> str | None:
        """Return the image that their root disks are made of; None: they are volumes."""
        return None if self.volume_backed else self.image_id or None


@dataclass(frozen=True)
class RebuildServer(FirstBoot):
    """A server that gets a new disk, made from an image."""

    image_id: str
    image_properties: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Other columns of the server that change with it."""
    reimages: bool = False
    """Whether a root disk that is a volume gets the image, too; else it is left unchanged."""


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
    repeated: bool = False
    """Whether they had been created before, by the same request."""


class ServerRpc(Protocol):
    """Servers of users."""

    def create_servers(self, ctxt: RequestContext, request: CreateServers) -> CreatedServers:
        """Check and take quota, write the servers and their operations, begin the builds.

        Raises QuotaExceeded (details: resource, limit, used, requested), NetworkNotFound,
        Invalid (a fixed address that isn't free or that no server can have), Forbidden (one
        outside of the pool), Conflict (more than one network to choose from), NotFound (the
        server group).
        """

    def act(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        action: str,
        params: Mapping[str, Any] | None = None,
    ) -> int:
        """Begin one of ``states.ACTIONS`` other than create; returns the operation's id.

        Raises ServerStateConflict (details: attribute, state, action, server_uuid), ServerLocked
        and ServerNotFound, and QuotaExceeded for a restore. A second delete of a server that is
        being deleted changes nothing. With ``deferred`` a delete can be reverted, where the cloud
        retains deleted servers for some time.
        """

    def resize_server(self, ctxt: RequestContext, server_uuid: str, flavor: FlavorSnapshot) -> int:
        """Begin a resize, and take what it grows by from the quota; returns the operation's id.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, Conflict (the host's agent is
        down), Invalid (the server can't have the flavor), QuotaExceeded.
        """

    def migrate_server(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> int:
        """Begin a cold migration, to this host or to any other; returns the operation's id.

        Raises ServerNotFound, ServerStateConflict, HostNotFound, Conflict (the agent of its host
        is down), Invalid (to its own host or another cluster, or it can't be moved).
        """

    def end_resize(self, ctxt: RequestContext, server_uuid: str, action: str) -> int:
        """Begin ``confirmResize`` or ``revertResize``; returns the operation's id.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, Conflict (the host's agent is
        down), Invalid (it was not resized).
        """

    def rebuild_server(
        self, ctxt: RequestContext, server_uuid: str, request: RebuildServer
    ) -> int:
        """Give a server a new disk, on its own host; returns the operation's id.

        Its record has what was asked at once. Raises ServerNotFound, ServerLocked,
        ServerStateConflict, Conflict (it has a TPM, or no host), QuotaExceeded (metadata,
        files), and Invalid for an image that needs other hardware than the server can get.
        """

    def create_server_image(
        self, ctxt: RequestContext, server_uuid: str, image: NewServerImage
    ) -> str | None:
        """Begin ``createImage`` or ``createBackup``; return the image's id, None: none is kept.

        Raises ServerNotFound, ServerStateConflict, QuotaExceeded.
        """

    def steer_migration(
        self, ctxt: RequestContext, server_uuid: str, number: int, *, abort: bool
    ) -> None:
        """Abort a live migration, or have it end at once by pausing the guest.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, NotFound (the migration),
        Invalid (it is too early or too late, or the agent's token may not).
        """

    def live_migrate_server(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        host: str | None,
        copy_disks: bool | None,
        *,
        checks_storage: bool = False,
    ) -> int:
        """Begin a live migration to this host, or to any other; returns the operation's id.

        ``copy_disks``: whether disks must be copied; None: as needed. ``checks_storage``: refuse
        at once what its storage doesn't allow, as the operation would later. Raises
        ServerNotFound, ServerLocked, ServerStateConflict, HostNotFound, Invalid (to its own host,
        to another cluster, or it can't be moved).
        """

    def evacuate_server(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> int:
        """Begin to wait until the HA manager has recovered a server of a lost host; returns the
        operation's id.

        Raises ServerNotFound, ServerStateConflict, HostNotFound, Unavailable (no scheduler), and
        Invalid: it is its own host, or its host is not lost, or a ``host`` is asked of the HA
        manager, or it doesn't recover the server; then with what the operator can do.
        """

    def rescue_server(
        self, ctxt: RequestContext, server_uuid: str, image_id: str, admin_password: str
    ) -> int:
        """Run a server from a disk made of an image; returns the operation's id.

        ``act`` with ``unrescue`` ends it. Raises ServerNotFound, ServerLocked,
        ServerStateConflict, Conflict (it has a TPM, or no host).
        """

    def update_server(
        self, ctxt: RequestContext, server_uuid: str, changes: Mapping[str, Any]
    ) -> None:
        """Change the columns of ``conductor.endpoints.servers.servers.CHANGEABLE``.

        Raises ServerNotFound, and Conflict for a zone that the server can't be pinned to.
        """

    def set_server_metadata(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        metadata: Mapping[str, str],
        *,
        replace: bool,
        delete: Sequence[str] = (),
    ) -> dict[str, str]:
        """Merge (or replace by) the metadata, drop the deleted keys; return the result.

        Raises ServerNotFound, ServerLocked, and QuotaExceeded when there are more than
        ``metadata_items``.
        """

    def set_server_tags(self, ctxt: RequestContext, server_uuid: str, tags: Sequence[str]) -> None:
        """Replace the tags. Raises ServerNotFound."""

    def lock_server(self, ctxt: RequestContext, server_uuid: str, reason: str | None) -> None:
        """Lock a server: only administrators act on it then. Raises ServerNotFound.

        Nothing changes where its owner locks it once more.
        """

    def reset_server_state(self, ctxt: RequestContext, server_uuid: str, state: str) -> None:
        """Set the state of a server, one of ``VmState``; for administrators. No VM is touched.

        Raises ServerNotFound, and ServerStateConflict while an operation is open that neither is
        superseded by this nor continues independently.
        """

    def unlock_server(self, ctxt: RequestContext, server_uuid: str, *, override: bool) -> None:
        """Unlock a server; ``override``: also a server that others locked.

        Raises ServerNotFound, Forbidden.
        """

"""The RPC surface of the conductor: one protocol a noun, one method a row.

Events that other services publish to the same topic are in ``common.events.ConductorEvents``.
"""

from __future__ import annotations

from typing import Any, Protocol

from common.context import RequestContext
from common.messages.consoles import ConsoleTarget
from common.messages.guests import Diagnostics
from common.messages.scheduling import Decision
from conductor.messages import (
    Adopted,
    Adoption,
    AttachedVolume,
    Attachment,
    CreatedServers,
    CreateServers,
    DrainStep,
    Evacuation,
    FlavorSnapshot,
    Healing,
    ImageData,
    ImageEdit,
    MetadefItem,
    MetadefNamespace,
    NewAddressGroup,
    NewBackup,
    NewDefaultRule,
    NewFlavor,
    NewImage,
    NewKeyPair,
    NewNetwork,
    NewPort,
    NewRule,
    NewSecurityGroup,
    NewServerGroup,
    NewServerImage,
    NewShare,
    NewSubnet,
    NewVolume,
    NewVolumeImage,
    NewVolumeSnapshot,
    NewVolumeTransfer,
    OfferedVolume,
    PortChange,
    RebuildServer,
    Refused,
    SecurityGroupChange,
    TagChange,
    VolumeEdit,
    VolumeTypeEdit,
    VolumeWish,
)
from scheduler.messages import Capacity, Rebalancing


class ServerRpc(Protocol):
    """Servers of users."""

    def create_servers(self, ctxt: RequestContext, request: CreateServers) -> CreatedServers: ...
    def act(
        self, ctxt: RequestContext, server_uuid: str, action: str, params: dict[str, Any]
    ) -> int: ...
    def resize_server(
        self, ctxt: RequestContext, server_uuid: str, flavor: FlavorSnapshot
    ) -> int: ...
    def migrate_server(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> int: ...
    def end_resize(self, ctxt: RequestContext, server_uuid: str, action: str) -> int: ...
    def rebuild_server(
        self, ctxt: RequestContext, server_uuid: str, request: RebuildServer
    ) -> int: ...
    def create_server_image(
        self, ctxt: RequestContext, server_uuid: str, image: NewServerImage
    ) -> str | None: ...
    def steer_migration(
        self, ctxt: RequestContext, server_uuid: str, number: int, abort: bool
    ) -> None: ...
    def live_migrate_server(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        host: str | None,
        copy_disks: bool | None,
        checks_storage: bool,
    ) -> int: ...
    def evacuate_server(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> int: ...
    def rescue_server(
        self, ctxt: RequestContext, server_uuid: str, image_id: str, admin_password: str
    ) -> int: ...
    def update_server(
        self, ctxt: RequestContext, server_uuid: str, changes: dict[str, Any]
    ) -> None: ...
    def set_server_metadata(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        metadata: dict[str, str],
        replace: bool,
        delete: list[str],
    ) -> dict[str, str]: ...
    def set_server_tags(self, ctxt: RequestContext, server_uuid: str, tags: list[str]) -> None: ...
    def lock_server(self, ctxt: RequestContext, server_uuid: str, reason: str | None) -> None: ...
    def reset_server_state(self, ctxt: RequestContext, server_uuid: str, state: str) -> None: ...
    def unlock_server(self, ctxt: RequestContext, server_uuid: str, override: bool) -> None: ...


class ManageRpc(Protocol):
    """Servers that are adopted, held or abandoned by administrators."""

    def adopt(self, ctxt: RequestContext, adoption: Adoption) -> Adopted: ...
    def abandon(
        self, ctxt: RequestContext, server_uuid: str, reason: str | None, force: bool
    ) -> None: ...
    def hold_server(self, ctxt: RequestContext, server_uuid: str, held: bool) -> None: ...
    def mark_server(self, ctxt: RequestContext, server_uuid: str) -> None: ...
    def retry_server(self, ctxt: RequestContext, server_uuid: str) -> None: ...


class WhatIfRpc(Protocol):
    """Dry runs: nothing is claimed or written."""

    def preview_servers(
        self, ctxt: RequestContext, request: CreateServers, without: list[str]
    ) -> list[Decision]: ...
    def capacity(
        self, ctxt: RequestContext, request: CreateServers, without: list[str]
    ) -> Capacity: ...
    def evacuation(self, ctxt: RequestContext, host: str) -> list[Evacuation]: ...
    def rebalance(self, ctxt: RequestContext, limit: int) -> Rebalancing: ...
    def drain_plan(self, ctxt: RequestContext, host: str, live_only: bool) -> list[DrainStep]: ...


class BulkMigrationRpc(Protocol):
    """Migrations of many servers."""

    def drain(self, ctxt: RequestContext, host: str, at_once: int, live_only: bool) -> int: ...
    def apply_rebalance(self, ctxt: RequestContext, limit: int, at_once: int) -> int: ...
    def steer_bulk_migration(self, ctxt: RequestContext, number: int, wish: str) -> None: ...


class FlavorRpc(Protocol):
    """Flavors."""

    def create_flavor(self, ctxt: RequestContext, flavor: NewFlavor) -> str: ...
    def update_flavor(
        self, ctxt: RequestContext, flavorid: str, description: str | None
    ) -> None: ...
    def delete_flavor(self, ctxt: RequestContext, flavorid: str) -> None: ...
    def set_flavor_extra_specs(
        self, ctxt: RequestContext, flavorid: str, specs: dict[str, str], delete: list[str]
    ) -> None: ...
    def set_flavor_access(
        self, ctxt: RequestContext, flavorid: str, project_id: str, allowed: bool
    ) -> None: ...


class KeyPairRpc(Protocol):
    """Key pairs."""

    def create_keypair(self, ctxt: RequestContext, keypair: NewKeyPair) -> None: ...
    def delete_keypair(self, ctxt: RequestContext, user_id: str, name: str) -> None: ...


class QuotaRpc(Protocol):
    """Quotas of projects."""

    def set_quota(
        self, ctxt: RequestContext, project_id: str, limits: dict[str, int], force: bool
    ) -> None: ...
    def set_quota_class(
        self, ctxt: RequestContext, class_name: str, limits: dict[str, int]
    ) -> None: ...
    def reset_quota(self, ctxt: RequestContext, project_id: str, resources: list[str]) -> None: ...


class ServiceRpc(Protocol):
    """Services, including the conductor that answers."""

    def ping(self, ctxt: RequestContext) -> str: ...
    def update_service(
        self,
        ctxt: RequestContext,
        service_uuid: str,
        disabled: bool | None,
        reason: str | None,
        forced_down: bool | None,
    ) -> None: ...
    def delete_service(self, ctxt: RequestContext, service_uuid: str) -> None: ...


class ServerGroupRpc(Protocol):
    """Server groups."""

    def create_server_group(self, ctxt: RequestContext, group: NewServerGroup) -> str: ...
    def delete_server_group(self, ctxt: RequestContext, group_uuid: str) -> None: ...


class AggregateRpc(Protocol):
    """Host aggregates."""

    def create_aggregate(self, ctxt: RequestContext, name: str, zone: str | None) -> int: ...
    def update_aggregate(
        self, ctxt: RequestContext, number: int, name: str | None, metadata: dict[str, str | None]
    ) -> None: ...
    def set_aggregate_metadata(
        self, ctxt: RequestContext, number: int, metadata: dict[str, str | None]
    ) -> None: ...
    def delete_aggregate(self, ctxt: RequestContext, number: int) -> None: ...
    def add_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None: ...
    def remove_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None: ...
    def cache_images(self, ctxt: RequestContext, number: int, image_ids: list[str]) -> None: ...


class AuditRpc(Protocol):
    """Audits and what they found."""

    def begin_audit(self, ctxt: RequestContext) -> int: ...
    def heal_finding(self, ctxt: RequestContext, finding_id: int, force: bool) -> Healing: ...


class ConsoleRpc(Protocol):
    """Consoles of servers, and the proxies that open them."""

    def authorize_console(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        protocol: str,
        console_type: str,
        token_hash: str,
    ) -> None: ...
    def use_console_token(self, ctxt: RequestContext, token_hash: str) -> ConsoleTarget: ...


class GuestRpc(Protocol):
    """What runs in servers."""

    def diagnose_server(self, ctxt: RequestContext, server_uuid: str) -> Diagnostics: ...
    def server_console_log(self, ctxt: RequestContext, server_uuid: str) -> str: ...
    def change_password(self, ctxt: RequestContext, server_uuid: str, password: str) -> None: ...


class InterfaceRpc(Protocol):
    """Interfaces of servers."""

    def attach_interface(
        self, ctxt: RequestContext, server_uuid: str, asked: Attachment, wait: bool
    ) -> str: ...
    def detach_interface(self, ctxt: RequestContext, server_uuid: str, port_id: str) -> None: ...
    def detach_address(self, ctxt: RequestContext, server_uuid: str, address: str) -> None: ...


class PortRpc(Protocol):
    """Ports of users, and the tags of all that is of the network."""

    def create_ports(self, ctxt: RequestContext, ports: list[NewPort]) -> list[str]: ...
    def update_port(self, ctxt: RequestContext, port_id: str, asked: PortChange) -> None: ...
    def delete_port(self, ctxt: RequestContext, port_id: str) -> None: ...
    def change_tags(
        self, ctxt: RequestContext, kind: str, record_id: str, change: TagChange
    ) -> list[str]: ...


class NetworkRpc(Protocol):
    """Networks and subnets of projects."""

    def create_networks(self, ctxt: RequestContext, networks: list[NewNetwork]) -> list[str]: ...
    def update_network(
        self, ctxt: RequestContext, network_id: str, asked: dict[str, Any]
    ) -> None: ...
    def delete_network(self, ctxt: RequestContext, network_id: str) -> None: ...
    def create_subnets(self, ctxt: RequestContext, subnets: list[NewSubnet]) -> list[str]: ...
    def update_subnet(
        self, ctxt: RequestContext, subnet_id: str, asked: dict[str, Any]
    ) -> None: ...
    def delete_subnet(self, ctxt: RequestContext, subnet_id: str) -> None: ...
    def create_network_shares(self, ctxt: RequestContext, shares: list[NewShare]) -> list[str]: ...
    def update_network_share(self, ctxt: RequestContext, share_id: str, target: str) -> None: ...
    def delete_network_share(self, ctxt: RequestContext, share_id: str) -> None: ...
    def auto_network(self, ctxt: RequestContext, project_id: str, dry_run: bool) -> str: ...
    def delete_auto_network(self, ctxt: RequestContext, project_id: str) -> None: ...


class ImageRpc(Protocol):
    """Images, their tags, and the projects that they are shared with."""

    def create_image(self, ctxt: RequestContext, image: NewImage) -> str: ...
    def edit_image(self, ctxt: RequestContext, image_id: str, edits: list[ImageEdit]) -> None: ...
    def delete_image(self, ctxt: RequestContext, image_id: str) -> None: ...
    def save_image(
        self, ctxt: RequestContext, image_id: str, data: ImageData, task_id: str | None = None
    ) -> None: ...
    def stage_image(self, ctxt: RequestContext, image_id: str, data: ImageData) -> None: ...
    def import_staged_image(self, ctxt: RequestContext, image_id: str) -> None: ...
    def begin_image_download(self, ctxt: RequestContext, image_id: str, uri: str) -> str: ...
    def keep_image_download(self, ctxt: RequestContext, image_id: str, task_id: str) -> None: ...
    def fail_image_download(
        self, ctxt: RequestContext, image_id: str, task_id: str, why: str
    ) -> None: ...
    def tag_image(self, ctxt: RequestContext, image_id: str, tag: str, wanted: bool) -> None: ...
    def activate_image(self, ctxt: RequestContext, image_id: str, wanted: bool) -> None: ...
    def create_metadef_namespace(
        self, ctxt: RequestContext, namespace: MetadefNamespace, items: list[MetadefItem]
    ) -> None: ...
    def update_metadef_namespace(
        self, ctxt: RequestContext, name: str, namespace: MetadefNamespace
    ) -> None: ...
    def delete_metadef_namespace(self, ctxt: RequestContext, name: str) -> None: ...
    def change_metadef_items(
        self,
        ctxt: RequestContext,
        namespace: str,
        kind: str,
        removed: list[str] | None,
        items: list[MetadefItem],
    ) -> None: ...
    def create_image_member(self, ctxt: RequestContext, image_id: str, member: str) -> None: ...
    def update_image_member(
        self, ctxt: RequestContext, image_id: str, member: str, status: str
    ) -> None: ...
    def delete_image_member(self, ctxt: RequestContext, image_id: str, member: str) -> None: ...


class SecurityGroupRpc(Protocol):
    """Security groups and their rules."""

    def ensure_default_security_group(self, ctxt: RequestContext, project_id: str) -> str: ...
    def create_security_groups(
        self, ctxt: RequestContext, groups: list[NewSecurityGroup]
    ) -> list[str]: ...
    def update_security_group(
        self, ctxt: RequestContext, group_id: str, asked: SecurityGroupChange
    ) -> None: ...
    def delete_security_group(self, ctxt: RequestContext, group_id: str) -> None: ...
    def create_security_group_rules(
        self, ctxt: RequestContext, project_id: str, rules: list[NewRule]
    ) -> list[str]: ...
    def delete_security_group_rule(self, ctxt: RequestContext, rule_id: str) -> None: ...
    def create_default_rules(
        self, ctxt: RequestContext, rules: list[NewDefaultRule]
    ) -> list[str]: ...
    def delete_default_rule(self, ctxt: RequestContext, rule_id: str) -> None: ...
    def change_server_security_group(
        self, ctxt: RequestContext, server_uuid: str, group_id: str, on: bool
    ) -> None: ...


class AddressGroupRpc(Protocol):
    """Address groups, which rules of security groups name."""

    def create_address_groups(
        self, ctxt: RequestContext, groups: list[NewAddressGroup]
    ) -> list[str]: ...
    def update_address_group(
        self, ctxt: RequestContext, group_id: str, asked: dict[str, str]
    ) -> None: ...
    def change_addresses(
        self, ctxt: RequestContext, group_id: str, add: list[str], remove: list[str]
    ) -> None: ...
    def delete_address_group(self, ctxt: RequestContext, group_id: str) -> None: ...


class VolumeRpc(Protocol):
    """Volumes of projects."""

    def create_volume(self, ctxt: RequestContext, volume: NewVolume) -> str: ...
    def edit_volume(self, ctxt: RequestContext, volume_id: str, edit: VolumeEdit) -> None: ...
    def delete_volume(
        self, ctxt: RequestContext, volume_id: str, force: bool, cascade: bool = False
    ) -> None: ...
    def extend_volume(
        self, ctxt: RequestContext, volume_id: str, size_gib: int, in_use: bool
    ) -> None: ...
    def reimage_volume(
        self, ctxt: RequestContext, volume_id: str, image_id: str, reserved: bool
    ) -> None: ...
    def retype_volume(
        self, ctxt: RequestContext, volume_id: str, type_id: str, may_move: bool
    ) -> None: ...
    def upload_volume(
        self, ctxt: RequestContext, volume_id: str, image: NewVolumeImage
    ) -> str: ...
    def reset_volume(self, ctxt: RequestContext, volume_id: str, status: str) -> None: ...
    def reserve_volume(self, ctxt: RequestContext, volume_id: str, wanted: bool) -> None: ...


class VolumeSnapshotRpc(Protocol):
    """Snapshots of volumes."""

    def create_volume_snapshot(self, ctxt: RequestContext, snapshot: NewVolumeSnapshot) -> str: ...
    def edit_volume_snapshot(
        self, ctxt: RequestContext, snapshot_id: str, edit: VolumeEdit
    ) -> None: ...
    def delete_volume_snapshot(self, ctxt: RequestContext, snapshot_id: str) -> None: ...
    def reset_volume_snapshot(
        self, ctxt: RequestContext, snapshot_id: str, status: str
    ) -> None: ...
    def revert_volume(self, ctxt: RequestContext, volume_id: str, snapshot_id: str) -> None: ...


class VolumeTransferRpc(Protocol):
    """Transfers of volumes to other projects."""

    def create_volume_transfer(
        self, ctxt: RequestContext, transfer: NewVolumeTransfer
    ) -> OfferedVolume: ...
    def accept_volume_transfer(
        self, ctxt: RequestContext, transfer_id: str, auth_key: str
    ) -> None: ...
    def delete_volume_transfer(self, ctxt: RequestContext, transfer_id: str) -> None: ...


class VolumeMessageRpc(Protocol):
    """Messages about volumes."""

    def delete_volume_message(self, ctxt: RequestContext, operation_id: int) -> None: ...


class BackupRpc(Protocol):
    """Backups of volumes."""

    def create_backup(self, ctxt: RequestContext, backup: NewBackup) -> str: ...
    def edit_backup(self, ctxt: RequestContext, backup_id: str, edit: VolumeEdit) -> None: ...
    def delete_backup(self, ctxt: RequestContext, backup_id: str, force: bool) -> None: ...
    def restore_backup(
        self, ctxt: RequestContext, backup_id: str, volume_id: str | None, name: str | None
    ) -> str: ...
    def reset_backup(self, ctxt: RequestContext, backup_id: str, status: str) -> None: ...


class VolumeTypeRpc(Protocol):
    """Types of volumes, which administrators change."""

    def create_volume_type(self, ctxt: RequestContext, asked: VolumeTypeEdit) -> str: ...
    def edit_volume_type(
        self, ctxt: RequestContext, type_id: str, asked: VolumeTypeEdit
    ) -> None: ...
    def delete_volume_type(self, ctxt: RequestContext, type_id: str) -> None: ...
    def allow_volume_type(
        self, ctxt: RequestContext, type_id: str, project_id: str, wanted: bool
    ) -> None: ...
    def set_default_volume_type(
        self, ctxt: RequestContext, project_id: str, type_id: str | None
    ) -> None: ...
    def update_volume_service(
        self, ctxt: RequestContext, service_uuid: str, disabled: bool, reason: str | None
    ) -> None: ...


class ServerVolumeRpc(Protocol):
    """Volumes of servers."""

    def attach_volume(
        self, ctxt: RequestContext, server_uuid: str, asked: VolumeWish
    ) -> AttachedVolume: ...
    def detach_volume(self, ctxt: RequestContext, server_uuid: str, volume_id: str) -> None: ...
    def keep_volume(
        self, ctxt: RequestContext, server_uuid: str, volume_id: str, delete: bool
    ) -> None: ...


class RefusalRpc(Protocol):
    """Requests that the API refused."""

    # A cast.
    def refused(self, ctxt: RequestContext, refused: Refused) -> None: ...


class ConductorRpc(
    ServerRpc,
    ManageRpc,
    WhatIfRpc,
    BulkMigrationRpc,
    FlavorRpc,
    KeyPairRpc,
    QuotaRpc,
    ServiceRpc,
    ServerGroupRpc,
    AggregateRpc,
    AuditRpc,
    ConsoleRpc,
    GuestRpc,
    InterfaceRpc,
    PortRpc,
    NetworkRpc,
    SecurityGroupRpc,
    AddressGroupRpc,
    ImageRpc,
    VolumeRpc,
    VolumeSnapshotRpc,
    VolumeTransferRpc,
    VolumeMessageRpc,
    BackupRpc,
    VolumeTypeRpc,
    ServerVolumeRpc,
    RefusalRpc,
    Protocol,
):
    """Topic ``conductor``. ``ConductorClient`` documents the methods."""


#: one endpoint a noun
Endpoints = tuple[
    ServerRpc,
    ManageRpc,
    WhatIfRpc,
    BulkMigrationRpc,
    FlavorRpc,
    KeyPairRpc,
    QuotaRpc,
    ServiceRpc,
    ServerGroupRpc,
    AggregateRpc,
    AuditRpc,
    ConsoleRpc,
    GuestRpc,
    InterfaceRpc,
    PortRpc,
    NetworkRpc,
    SecurityGroupRpc,
    AddressGroupRpc,
    ImageRpc,
    VolumeRpc,
    VolumeSnapshotRpc,
    VolumeTransferRpc,
    VolumeMessageRpc,
    BackupRpc,
    VolumeTypeRpc,
    ServerVolumeRpc,
    RefusalRpc,
]

"""The conductor as the API sees it: the only module (with ``messages``) that others import.

Every method is one RPC call and returns when the change is committed. Errors are those of
``common.errors``, rebuilt on this side; a conductor that doesn't answer is Unavailable.
"""

from __future__ import annotations

from conductor.client.address_groups import AddressGroupCalls
from conductor.client.aggregates import AggregateCalls
from conductor.client.audits import AuditCalls
from conductor.client.backups import BackupCalls
from conductor.client.bulk_migrations import BulkMigrationCalls
from conductor.client.consoles import ConsoleCalls
from conductor.client.flavors import FlavorCalls
from conductor.client.guests import GuestCalls
from conductor.client.images import ImageCalls
from conductor.client.interfaces import InterfaceCalls
from conductor.client.keypairs import KeyPairCalls
from conductor.client.manage import ManageCalls
from conductor.client.networks import NetworkCalls
from conductor.client.ports import PortCalls
from conductor.client.quotas import QuotaCalls
from conductor.client.refusals import RefusalCalls
from conductor.client.security_groups import SecurityGroupCalls
from conductor.client.server_groups import ServerGroupCalls
from conductor.client.server_volumes import ServerVolumeCalls
from conductor.client.servers import ServerCalls
from conductor.client.services import ServiceCalls
from conductor.client.volume_snapshots import VolumeSnapshotCalls
from conductor.client.volume_transfers import VolumeTransferCalls
from conductor.client.volumes import VolumeCalls
from conductor.client.whatif import WhatIfCalls


class ConductorClient(
    ServerCalls,
    ManageCalls,
    WhatIfCalls,
    BulkMigrationCalls,
    FlavorCalls,
    KeyPairCalls,
    QuotaCalls,
    ServiceCalls,
    ServerGroupCalls,
    AggregateCalls,
    AuditCalls,
    ConsoleCalls,
    GuestCalls,
    InterfaceCalls,
    PortCalls,
    NetworkCalls,
    SecurityGroupCalls,
    AddressGroupCalls,
    ImageCalls,
    VolumeCalls,
    VolumeSnapshotCalls,
    VolumeTransferCalls,
    BackupCalls,
    ServerVolumeCalls,
    RefusalCalls,
):
    """Calls of every noun, each method of ``conductor.rpc_api.ConductorRpc`` once."""

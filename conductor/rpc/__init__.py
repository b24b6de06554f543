"""The conductor as others see it: one protocol a noun, with the messages that its methods take.

Every method is one RPC call and returns when the change is committed. Errors are those of
``common.errors``, rebuilt on this side; a conductor that doesn't answer is Unavailable. Events
that other services publish to the same topic are in ``common.rpc.events.ConductorEvents``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from common import rpc
from common.messages.topics import CONDUCTOR_TOPIC
from common.rpc.typed import Remote, TypedClient
from conductor.rpc.audits import AuditRpc
from conductor.rpc.bulk_migrations import BulkMigrationRpc
from conductor.rpc.groups import GroupRpc
from conductor.rpc.hosts.aggregates import AggregateRpc
from conductor.rpc.hosts.services import ServiceRpc
from conductor.rpc.images import ImageRpc
from conductor.rpc.networks.address_groups import AddressGroupRpc
from conductor.rpc.networks.networks import NetworkRpc
from conductor.rpc.networks.ports import PortRpc
from conductor.rpc.networks.security_groups import SecurityGroupRpc
from conductor.rpc.quotas import QuotaRpc
from conductor.rpc.refusals import RefusalRpc
from conductor.rpc.servers.consoles import ConsoleRpc
from conductor.rpc.servers.flavors import FlavorRpc
from conductor.rpc.servers.guests import GuestRpc
from conductor.rpc.servers.interfaces import InterfaceRpc
from conductor.rpc.servers.keypairs import KeyPairRpc
from conductor.rpc.servers.manage import ManageRpc
from conductor.rpc.servers.server_groups import ServerGroupRpc
from conductor.rpc.servers.server_volumes import ServerVolumeRpc
from conductor.rpc.servers.servers import ServerRpc
from conductor.rpc.volumes.backups import BackupRpc
from conductor.rpc.volumes.messages import VolumeMessageRpc
from conductor.rpc.volumes.snapshots import VolumeSnapshotRpc
from conductor.rpc.volumes.transfers import VolumeTransferRpc
from conductor.rpc.volumes.types import VolumeTypeRpc
from conductor.rpc.volumes.volumes import VolumeRpc
from conductor.rpc.whatif import WhatIfRpc

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging


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
    GroupRpc,
    Protocol,
):
    """Topic ``conductor``: each noun's methods."""


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
    GroupRpc,
]


def connect(
    transport: oslo_messaging.Transport,
    timeout_seconds: float | None = None,
    look: rpc.Look | None = None,
    topic: str = CONDUCTOR_TOPIC,
) -> ConductorRpc:
    """Return any conductor; its methods wait so long for answers (default: ``[rpc]``'s time).

    While one is silent another one is asked. ``look`` is asked in the end whether a call without
    an answer was carried out. On another topic conductors answer some of the methods.
    """
    client = rpc.Client(transport, topic)
    sent = TypedClient[ConductorRpc](
        client, timeout_seconds=timeout_seconds, repeats=True, look=look
    )
    return cast(ConductorRpc, Remote(ConductorRpc, sent))

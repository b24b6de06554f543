"""Each topic's protocol, its endpoint and its client say the same."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import pytest

from common import codec, signatures
from common.events import ConductorEvents, HostEvents, WorkerEvents
from common.messages.commands import Command
from compute import manager as compute_manager
from compute.client import ComputeClient
from compute.commands import COMMANDS
from compute.rpc_api import WorkerRpc
from conductor import rpc_api
from conductor.client import ConductorClient
from conductor.endpoints.address_groups import AddressGroupEndpoint
from conductor.endpoints.aggregates import AggregateEndpoint
from conductor.endpoints.audits import AuditEndpoint
from conductor.endpoints.backups import BackupEndpoint
from conductor.endpoints.bulk_migrations import BulkMigrationEndpoint
from conductor.endpoints.consoles import ConsoleEndpoint
from conductor.endpoints.events import EventEndpoint
from conductor.endpoints.flavors import FlavorEndpoint
from conductor.endpoints.guests import GuestEndpoint
from conductor.endpoints.images import ImageEndpoint
from conductor.endpoints.interfaces import InterfaceEndpoint
from conductor.endpoints.keypairs import KeyPairEndpoint
from conductor.endpoints.manage import ManageEndpoint
from conductor.endpoints.networks import NetworkEndpoint
from conductor.endpoints.ports import PortEndpoint
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.endpoints.refusals import RefusalEndpoint
from conductor.endpoints.security_groups import SecurityGroupEndpoint
from conductor.endpoints.server_groups import ServerGroupEndpoint
from conductor.endpoints.server_volumes import ServerVolumeEndpoint
from conductor.endpoints.servers import ServerEndpoint
from conductor.endpoints.services import ServiceEndpoint
from conductor.endpoints.volume_messages import VolumeMessageEndpoint
from conductor.endpoints.volume_snapshots import VolumeSnapshotEndpoint
from conductor.endpoints.volume_transfers import VolumeTransferEndpoint
from conductor.endpoints.volume_types import VolumeTypeEndpoint
from conductor.endpoints.volumes import VolumeEndpoint
from conductor.endpoints.whatif import WhatIfEndpoint
from scheduler import manager as scheduler_manager
from scheduler.client import SchedulerClient
from scheduler.rpc_api import SchedulerRpc

#: of a client: the worker that it sends to is named beside the message
ADDRESS = {"self", "ctxt", "worker"}
#: sent by a worker to itself
OWN = {"tick"}
#: the client's own, not sent
KEPT = {"heard", "within"}


def methods(surface: type) -> dict[str, Any]:
    """Its public methods."""
    return {
        name: found
        for name, found in inspect.getmembers(surface, inspect.isfunction)
        if not name.startswith("_")
    }


def parameters(method: Any, but: set[str]) -> list[str]:
    return sorted(set(inspect.signature(method).parameters) - but)


#: of the conductor, one a noun
NOUNS = {
    rpc_api.ServerRpc: ServerEndpoint,
    rpc_api.ManageRpc: ManageEndpoint,
    rpc_api.WhatIfRpc: WhatIfEndpoint,
    rpc_api.BulkMigrationRpc: BulkMigrationEndpoint,
    rpc_api.FlavorRpc: FlavorEndpoint,
    rpc_api.KeyPairRpc: KeyPairEndpoint,
    rpc_api.QuotaRpc: QuotaEndpoint,
    rpc_api.ServiceRpc: ServiceEndpoint,
    rpc_api.ServerGroupRpc: ServerGroupEndpoint,
    rpc_api.AggregateRpc: AggregateEndpoint,
    rpc_api.AuditRpc: AuditEndpoint,
    rpc_api.ConsoleRpc: ConsoleEndpoint,
    rpc_api.GuestRpc: GuestEndpoint,
    rpc_api.InterfaceRpc: InterfaceEndpoint,
    rpc_api.PortRpc: PortEndpoint,
    rpc_api.NetworkRpc: NetworkEndpoint,
    rpc_api.SecurityGroupRpc: SecurityGroupEndpoint,
    rpc_api.AddressGroupRpc: AddressGroupEndpoint,
    rpc_api.ImageRpc: ImageEndpoint,
    rpc_api.VolumeRpc: VolumeEndpoint,
    rpc_api.VolumeSnapshotRpc: VolumeSnapshotEndpoint,
    rpc_api.VolumeTransferRpc: VolumeTransferEndpoint,
    rpc_api.VolumeMessageRpc: VolumeMessageEndpoint,
    rpc_api.BackupRpc: BackupEndpoint,
    rpc_api.VolumeTypeRpc: VolumeTypeEndpoint,
    rpc_api.ServerVolumeRpc: ServerVolumeEndpoint,
    rpc_api.RefusalRpc: RefusalEndpoint,
}


@pytest.mark.parametrize(
    ("surface", "endpoint"),
    [
        (WorkerRpc, compute_manager.Manager),
        (WorkerEvents, compute_manager.EventEndpoint),
        (SchedulerRpc, scheduler_manager.SchedulerManager),
        (HostEvents, scheduler_manager.HostFactsManager),
        (ConductorEvents, EventEndpoint),
        *NOUNS.items(),
    ],
)
def test_an_endpoint_answers_just_what_its_protocol_names(surface: type, endpoint: type) -> None:
    assert methods(endpoint).keys() == methods(surface).keys()
    for name, method in methods(surface).items():
        implemented = getattr(endpoint, name)
        assert inspect.signature(implemented) == inspect.signature(method), name
        assert signatures.messages(implemented) == signatures.messages(method), name


@pytest.mark.parametrize(
    ("surfaces", "client"),
    [
        ((WorkerRpc, WorkerEvents), ComputeClient),
        ((SchedulerRpc, HostEvents), SchedulerClient),
        ((rpc_api.ConductorRpc,), ConductorClient),
    ],
)
def test_a_client_sends_just_what_its_protocols_name(
    surfaces: tuple[type, ...], client: type
) -> None:
    table = {name: found for one in surfaces for name, found in methods(one).items()}
    # What other services publish to the same listeners is theirs to send.
    sent = {name: found for name, found in table.items() if name not in OWN | {"update_hosts"}}
    assert methods(client).keys() - KEPT == sent.keys()
    for name, method in sent.items():
        offered = getattr(client, name)
        assert parameters(offered, ADDRESS) == parameters(method, ADDRESS), name
        assert signatures.messages(offered) == signatures.messages(method), name


def test_an_agent_carries_out_every_command() -> None:
    assert set(COMMANDS) == set(codec.family(Command)) - {Command}


def test_the_conductor_serves_every_noun_of_its_table() -> None:
    nouns = get_args(rpc_api.Endpoints)
    assert rpc_api.ConductorRpc.__bases__[: len(nouns)] == nouns == tuple(NOUNS)


def test_a_method_of_the_conductor_has_one_noun() -> None:
    named = [name for noun in (*NOUNS, ConductorEvents) for name in methods(noun)]
    assert sorted(named) == sorted(set(named))

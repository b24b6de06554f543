"""Each topic's protocol, its endpoint and its client say the same."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

import pytest

from common import codec
from common.messages.commands import Command
from common.messages.questions import Question
from common.messages.reports import NotUnderstood, Outcome, Plugged
from common.rpc import signatures
from common.rpc.events import ConductorEvents, HostEvents, WorkerEvents
from compute.client import ComputeClient
from compute.commands import COMMANDS
from compute.rpc_api import WorkerRpc
from compute.worker import manager as compute_manager
from compute.worker.answers import ANSWERS
from conductor import rpc as conductor_rpc
from conductor.endpoints.audits import AuditEndpoint
from conductor.endpoints.bulk_migrations import BulkMigrationEndpoint
from conductor.endpoints.events import EventEndpoint
from conductor.endpoints.groups import GroupEndpoint
from conductor.endpoints.hosts.aggregates import AggregateEndpoint
from conductor.endpoints.hosts.services import ServiceEndpoint
from conductor.endpoints.images import ImageEndpoint
from conductor.endpoints.networks.address_groups import AddressGroupEndpoint
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.networks.security_groups import SecurityGroupEndpoint
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.endpoints.refusals import RefusalEndpoint
from conductor.endpoints.servers.consoles import ConsoleEndpoint
from conductor.endpoints.servers.flavors import FlavorEndpoint
from conductor.endpoints.servers.guests import GuestEndpoint
from conductor.endpoints.servers.interfaces import InterfaceEndpoint
from conductor.endpoints.servers.keypairs import KeyPairEndpoint
from conductor.endpoints.servers.manage import ManageEndpoint
from conductor.endpoints.servers.server_groups import ServerGroupEndpoint
from conductor.endpoints.servers.server_volumes import ServerVolumeEndpoint
from conductor.endpoints.servers.servers import ServerEndpoint
from conductor.endpoints.volumes.backups import BackupEndpoint
from conductor.endpoints.volumes.messages import VolumeMessageEndpoint
from conductor.endpoints.volumes.snapshots import VolumeSnapshotEndpoint
from conductor.endpoints.volumes.transfers import VolumeTransferEndpoint
from conductor.endpoints.volumes.types import VolumeTypeEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.endpoints.whatif import WhatIfEndpoint
from scheduler import manager as scheduler_manager
from scheduler.client import SchedulerClient
from scheduler.rpc_api import SchedulerRpc

#: of a client: the worker that it sends to is named beside the message
ADDRESS = {"self", "ctxt", "worker"}
#: sent by a worker to itself; and where the cluster is named by whom it is sent to
OWN = {"tick", "ask"}
#: the client's own, not sent; and as above
KEPT = {"ask"}


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
    conductor_rpc.ServerRpc: ServerEndpoint,
    conductor_rpc.ManageRpc: ManageEndpoint,
    conductor_rpc.WhatIfRpc: WhatIfEndpoint,
    conductor_rpc.BulkMigrationRpc: BulkMigrationEndpoint,
    conductor_rpc.FlavorRpc: FlavorEndpoint,
    conductor_rpc.KeyPairRpc: KeyPairEndpoint,
    conductor_rpc.QuotaRpc: QuotaEndpoint,
    conductor_rpc.ServiceRpc: ServiceEndpoint,
    conductor_rpc.ServerGroupRpc: ServerGroupEndpoint,
    conductor_rpc.AggregateRpc: AggregateEndpoint,
    conductor_rpc.AuditRpc: AuditEndpoint,
    conductor_rpc.ConsoleRpc: ConsoleEndpoint,
    conductor_rpc.GuestRpc: GuestEndpoint,
    conductor_rpc.InterfaceRpc: InterfaceEndpoint,
    conductor_rpc.PortRpc: PortEndpoint,
    conductor_rpc.NetworkRpc: NetworkEndpoint,
    conductor_rpc.SecurityGroupRpc: SecurityGroupEndpoint,
    conductor_rpc.AddressGroupRpc: AddressGroupEndpoint,
    conductor_rpc.ImageRpc: ImageEndpoint,
    conductor_rpc.VolumeRpc: VolumeEndpoint,
    conductor_rpc.VolumeSnapshotRpc: VolumeSnapshotEndpoint,
    conductor_rpc.VolumeTransferRpc: VolumeTransferEndpoint,
    conductor_rpc.VolumeMessageRpc: VolumeMessageEndpoint,
    conductor_rpc.BackupRpc: BackupEndpoint,
    conductor_rpc.VolumeTypeRpc: VolumeTypeEndpoint,
    conductor_rpc.ServerVolumeRpc: ServerVolumeEndpoint,
    conductor_rpc.RefusalRpc: RefusalEndpoint,
    conductor_rpc.GroupRpc: GroupEndpoint,
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
        assert signatures.messages(offered) == bare(signatures.messages(method)), name


def bare(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is said about the receiving side alone."""
    marked = {name: get_origin(hint) is Annotated for name, hint in hints.items()}
    return {name: get_args(hint)[0] if marked[name] else hint for name, hint in hints.items()}


def test_an_agent_carries_out_every_command() -> None:
    assert set(COMMANDS) == set(codec.family(Command)) - {Command}


def test_an_agent_answers_every_question() -> None:
    assert set(ANSWERS) == set(codec.family(Question)) - {Question}
    for question in ANSWERS:
        assert question.answer() is not None
    with pytest.raises(TypeError, match="Question names no type"):
        Question.answer()


def test_each_command_names_its_outcome() -> None:
    found = {command.__name__: command.outcome() for command in COMMANDS}
    assert set(found.values()) | {NotUnderstood} == set(codec.family(Outcome))
    assert (found["Swap"], found["PlugVolume"]) == (found["Build"], Plugged)
    with pytest.raises(TypeError, match="Command names no type"):
        Command.outcome()


def test_the_conductor_serves_every_noun_of_its_table() -> None:
    nouns = get_args(conductor_rpc.Endpoints)
    assert conductor_rpc.ConductorRpc.__bases__[: len(nouns)] == nouns == tuple(NOUNS)


def test_a_method_of_the_conductor_has_one_noun() -> None:
    named = [name for noun in (*NOUNS, ConductorEvents) for name in methods(noun)]
    assert sorted(named) == sorted(set(named))

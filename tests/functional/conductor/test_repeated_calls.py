"""A call that another conductor carried out, or carries out beside it, is answered the same."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from common import config, log, rpc
from common.context import RequestContext
from common.errors import Conflict, Invalid, MicronovaError, NotFound, Unavailable
from common.messages.commands import Build
from common.resources.states import PowerState
from common.rpc.deadlines import Wait
from conductor.endpoints.groups import GroupEndpoint
from conductor.endpoints.hosts.aggregates import AggregateEndpoint, Notifier
from conductor.endpoints.images import ImageEndpoint
from conductor.endpoints.servers.flavors import FlavorEndpoint
from conductor.endpoints.servers.interfaces import InterfaceEndpoint
from conductor.endpoints.servers.keypairs import KeyPairEndpoint
from conductor.endpoints.servers.server_volumes import ServerVolumeEndpoint
from conductor.endpoints.servers.servers import ServerEndpoint
from conductor.endpoints.volumes.transfers import VolumeTransferEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.rpc import ConductorRpc
from conductor.rpc.images import MetadefNamespace, NewImage
from conductor.rpc.servers.flavors import NewFlavor
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.keypairs import NewKeyPair
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.volumes.transfers import NewVolumeTransfer
from conductor.servers.move import begin_live_migration
from db import schema
from db.reads.ledger import calls
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_volumes import DATA, Site

TOPIC = "conductor"
KEY = "the key of an offer"
IMAGE_ID = "0d4c1a52-3c3e-4c63-9d0a-000000000001"


class Doubled(World):
    """A world whose conductor answers calls, which tests send twice."""

    def __init__(self, folder: Path, url: str | None) -> None:
        super().__init__(folder, url=url)
        cloud, runner = self.conductor.cloud, self.conductor.runner
        self.bus = rpc.within(config.load([rpc.register, log.register]))
        simple = (FlavorEndpoint, KeyPairEndpoint, ImageEndpoint, VolumeEndpoint)
        running = (InterfaceEndpoint, ServerVolumeEndpoint, GroupEndpoint)
        endpoints = [
            *(one(cloud) for one in (*simple, VolumeTransferEndpoint)),
            *(one(cloud, runner) for one in running),
            AggregateEndpoint(cloud, Notifier(cloud)),
            ServerEndpoint(cloud, runner, lambda operations: []),
        ]
        self._known = calls.looking(self.conductor.store.read)
        self.after_a_look: Callable[[], None] | None = None
        """What another conductor does once it was looked for what it has done."""
        self.server = rpc.Server(self.bus, TOPIC, "c1", endpoints, workers=4, look=self._look)
        self.server.start()
        self.storages.append(DATA)
        self.beat()
        runner.start()
        self.endpoints = Endpoints(endpoints)

    def _look(self, ctxt: RequestContext, call: str, method: str, kind: Any) -> rpc.Done | None:
        found = self._known(ctxt, call, method, kind)
        if self.after_a_look is not None:
            then, self.after_a_look = self.after_a_look, None
            then()
        return found

    def send(self, method: str, call: str, args: Mapping[str, Any], *, again: bool = False) -> Any:
        """Send a call; ``again``: as a client does that got no answer."""
        prepared = rpc.Client(self.bus, TOPIC)._client.prepare(timeout=60)
        waiting = rpc._Waiting(self.ctxt, Wait(20.0, 10.0, call=call, again=again))
        return prepared.call(waiting, method, **args)

    def made(self) -> dict[str, int]:
        """How many rows there are of each kind."""
        tables = schema.metadata.tables.items()
        moving = {"call_answers", "operation_events", "operation_transitions"}
        return {name: len(self.rows(table)) for name, table in tables if name not in moving}

    def a_server(self) -> str:
        (uuid,) = self.create()
        command = self.compute.wait_for(1)
        assert isinstance(command, Build)
        self.answer(command, ok=True, power_state=PowerState.RUNNING)
        self.until(uuid, "active")
        return uuid


class Endpoints:
    """The methods of several endpoints."""

    def __init__(self, endpoints: list[Any]) -> None:
        self._endpoints = endpoints

    def __getattr__(self, name: str) -> Any:
        return next(getattr(one, name) for one in self._endpoints if hasattr(one, name))


@pytest.fixture(params=["sqlite", "postgresql"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Doubled]:
    of_server = request.param == "postgresql"
    made = Doubled(tmp_path, request.getfixturevalue("postgres_url") if of_server else None)
    yield made
    made.server.stop()
    made.close()


def keypair(world: Doubled) -> dict[str, Any]:
    return {"keypair": NewKeyPair("u", "k", "ssh", "f", "ssh-rsa A")}


def keypair_to_delete(world: Doubled) -> dict[str, Any]:
    world.endpoints.create_keypair(world.ctxt, **keypair(world))
    return {"user_id": "u", "name": "k"}


def an_aggregate(world: Doubled) -> int:
    return int(world.endpoints.create_aggregate(world.ctxt, "fast", None))


def an_image(world: Doubled) -> str:
    return str(world.endpoints.create_image(world.ctxt, NewImage("p")))


def a_volume(world: Doubled) -> str:
    return Site(world).made()


def an_offer(world: Doubled) -> dict[str, Any]:
    new = NewVolumeTransfer(a_volume(world), auth_key=KEY)
    made = world.endpoints.create_volume_transfer(world.ctxt, new)
    world.ctxt = RequestContext(user_id="v", project_id="another", roles=["member"])
    return {"transfer_id": made.transfer_id, "auth_key": KEY}


CALLS: dict[str, Callable[[Doubled], dict[str, Any]]] = {
    "create_keypair": keypair,
    "delete_keypair": keypair_to_delete,
    "create_flavor": lambda world: {"flavor": NewFlavor("late", 1, 512, 1, "late")},
    "create_aggregate": lambda world: {"name": "fast", "zone": None},
    "add_aggregate_host": lambda world: {"number": an_aggregate(world), "host": "pve1"},
    "create_metadef_namespace": lambda world: {
        "namespace": MetadefNamespace("OS::Late", "p"),
        "items": [],
    },
    "create_image": lambda world: {"image": NewImage("p", id=IMAGE_ID)},
    "create_image_member": lambda world: {"image_id": an_image(world), "member": "q"},
    "reserve_volume": lambda world: {"volume_id": a_volume(world), "wanted": True},
    "create_volume_transfer": lambda world: {
        "transfer": NewVolumeTransfer(a_volume(world), auth_key=KEY)
    },
    "accept_volume_transfer": an_offer,
    "attach_volume": lambda world: {
        "server_uuid": world.a_server(),
        "asked": AttachRequest(a_volume(world)),
    },
    "attach_interface": lambda world: {
        "server_uuid": world.a_server(),
        "asked": Attachment(world.rows(schema.networks)[0].id),
        "wait": False,
    },
}


@pytest.mark.parametrize("method", CALLS)
def test_what_was_carried_out_is_answered_the_same(world: Doubled, method: str) -> None:
    args = CALLS[method](world)
    first = world.send(method, "a call", args)
    made = world.made()
    assert world.send(method, "a call", args, again=True) == first
    assert world.made() == made
    assert KEY not in str(world.rows(schema.call_answers))


@pytest.mark.parametrize("method", CALLS)
def test_what_is_carried_out_beside_it_is_answered_the_same(world: Doubled, method: str) -> None:
    """The first conductor commits after the second one has looked for that."""
    args = CALLS[method](world)
    answers: list[Any] = []
    world.after_a_look = lambda: answers.append(world.send(method, "a call", args))
    second = world.send(method, "a call", args, again=True)
    assert answers == [second]
    made = world.made()
    assert world.send(method, "a call", args, again=True) == second
    assert world.made() == made


@pytest.mark.parametrize(
    ("method", "refused"), [("create_keypair", Conflict), ("delete_keypair", NotFound)]
)
def test_what_another_call_did_is_not_ones_own(
    world: Doubled, method: str, refused: type[MicronovaError]
) -> None:
    args = CALLS[method](world)
    world.send(method, "a call", args)
    with pytest.raises(refused):
        world.send(method, "another call", args, again=True)


def test_what_goes_on_after_its_commit_is_carried_out_again(world: Doubled) -> None:
    """Its conductor died before it asked the agent."""
    server = world.a_server()
    cloud = world.conductor.cloud
    operation = begin_live_migration.accept(cloud, world.ctxt, server, None, None)
    world.conductor.runner.submit(operation)
    world.compute.wait_for(2)
    [migration] = world.rows(schema.migrations)
    args = {"server_uuid": server, "number": migration.id, "abort": True}
    world.compute.deaf = True
    with pytest.raises(Unavailable):
        world.send("steer_migration", "a call", args)
    world.compute.deaf, world.compute.refuses = False, "It has ended."
    with pytest.raises(Invalid, match=r"It has ended\."):
        world.send("steer_migration", "a call", args, again=True)


def test_no_answer_is_recorded_of_what_is_not_repeated(world: Doubled) -> None:
    prepared = rpc.Client(world.bus, TOPIC)._client.prepare(timeout=60)
    waiting = rpc._Waiting(world.ctxt, Wait(20.0, call="a call"))
    prepared.call(waiting, "create_keypair", **keypair(world))
    assert world.rows(schema.call_answers) == []


#: what changes nothing, or the same again
REPEATABLE = {
    *("adopt_preview", "auto_network", "capacity", "change_tags", "diagnose_server", "drain_plan"),
    *("ensure_default_security_group", "evacuation", "list_host_tasks", "measure_host"),
    *("measure_server", "ping", "preview_servers", "rebalance", "server_console_log"),
    "set_server_metadata",
}
NOTED = {
    *("adopt", "attach_interface", "attach_volume", "begin_image_download", "create_flavor"),
    *("create_volume_transfer", "restore_backup", "use_console_token"),
}


def test_each_method_is_answered_the_same_in_one_way() -> None:
    """Without an answer, found by its operation or UUIDs, noted, or harmless."""
    unknown = set()
    for name in dir(ConductorRpc):
        if name.startswith("_") or not callable(getattr(ConductorRpc, name)):
            continue
        kind = typing.get_type_hints(getattr(ConductorRpc, name)).get("return")
        if kind not in (int, type(None)) and name not in {*calls.MAKES, *NOTED, *REPEATABLE}:
            unknown.add(name)
    assert unknown == {"create_servers", "create_group", "heal_finding"}

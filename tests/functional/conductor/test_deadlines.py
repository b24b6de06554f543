"""A request whose caller has given up is not carried out, wherever it was held up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import config, log, rpc
from common.errors import Unavailable
from common.rpc.typed import TypedClient
from conductor.endpoints.hosts.aggregates import Notifier
from conductor.endpoints.hosts.services import ServiceEndpoint
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.endpoints.servers.flavors import FlavorEndpoint
from conductor.endpoints.servers.keypairs import KeyPairEndpoint
from conductor.endpoints.servers.servers import ServerEndpoint
from conductor.rpc import ConductorRpc, connect
from conductor.rpc.servers.flavors import FlavorSnapshot, NewFlavor
from conductor.rpc.servers.keypairs import NewKeyPair
from conductor.rpc.servers.servers import CreateServers
from db import schema
from tests.functional.conductor.harness import IMAGE, World

#: seconds for which callers wait
WAITS = 1
REQUEST = CreateServers("late", FlavorSnapshot("1", "m1.tiny", 1, 512, 1), IMAGE)


def client(name: str, waits: int) -> tuple[Any, ConductorRpc]:
    """A bus, and a client on it that waits for so many seconds."""
    conf = config.load([rpc.register, log.register])
    conf.set_override("transport_url", f"micronova-local://{name}/")
    conf.set_override("rpc_timeout_seconds", waits, group="rpc")
    bus = rpc.transport(conf)
    return bus, connect(bus)


class Held(World):
    """A world whose conductor answers calls, and may be held up."""

    def __init__(self, folder: Path, name: str, workers: int = 4) -> None:
        # Its gate is SQLite's.
        super().__init__(folder, url=f"sqlite:///{folder / 'held.db'}")
        self.bus, self.client = client(name, WAITS)
        _, self.patient = client(name, 60)
        cloud, runner = self.conductor.cloud, self.conductor.runner
        endpoints = [
            Gate(),
            ServerEndpoint(cloud, runner, lambda operations: []),
            ServiceEndpoint(cloud, Notifier(cloud)),
            *(one(cloud) for one in (FlavorEndpoint, KeyPairEndpoint, QuotaEndpoint)),
        ]
        self.server = rpc.Server(self.bus, "conductor", "c1", endpoints, workers=workers)
        self.server.start()
        self.runner = runner
        runner.start()

    def count(self, table: sa.Table) -> int:
        return len(self.rows(table))


class Gate:
    """Holds threads of the conductor until it is opened."""

    opened: threading.Event
    entered: threading.Semaphore

    def __init__(self) -> None:
        Gate.opened, Gate.entered = threading.Event(), threading.Semaphore(0)

    def hold(self, ctxt: Any) -> None:
        """Wait."""
        Gate.entered.release()
        Gate.opened.wait(60)


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Held]:
    made = Held(tmp_path, request.node.name.split("[")[0], workers=1)
    yield made
    Gate.opened.set()
    made.server.stop()
    made.close()


CALLS: dict[str, Callable[[Held, ConductorRpc], Any]] = {
    "create_servers": lambda world, by: by.create_servers(world.ctxt, REQUEST),
    "create_keypair": lambda world, by: by.create_keypair(
        world.ctxt, NewKeyPair("u", "k", "ssh", "f", "ssh-rsa A")
    ),
    "create_flavor": lambda world, by: by.create_flavor(world.ctxt, NewFlavor("late", 1, 512, 1)),
    "set_quota": lambda world, by: by.set_quota(world.ctxt, "p", {"cores": 1}, force=True),
}
TABLES = (schema.servers, schema.operations, schema.keypairs, schema.flavors, schema.quota_limits)


@pytest.mark.parametrize("call", CALLS)
def test_what_waited_for_a_thread_is_not_carried_out(world: Held, call: str) -> None:
    TypedClient[Gate](rpc.Client(world.bus, "conductor")).cast(world.ctxt, Gate.hold)
    assert Gate.entered.acquire(timeout=60)
    before = [world.count(table) for table in TABLES]
    with pytest.raises(Unavailable) as raised:
        CALLS[call](world, world.client)
    assert raised.value.details["outcome"] == rpc.UNKNOWN
    Gate.opened.set()
    # The one thread answers in order: what came before it is over when this is answered.
    assert world.patient.ping(world.ctxt) == "c1"
    assert [world.count(table) for table in TABLES] == before
    CALLS[call](world, world.patient)
    assert [world.count(table) for table in TABLES] != before


@pytest.mark.parametrize("call", CALLS)
def test_what_waited_for_the_database_is_undone(world: Held, call: str) -> None:
    """It was begun in time; the lock that it waits for is another's."""
    before = [world.count(table) for table in TABLES]
    gate = world.conductor.store._gate
    with gate, pytest.raises(Unavailable):
        CALLS[call](world, world.client)
    assert world.patient.ping(world.ctxt) == "c1"
    assert [world.count(table) for table in TABLES] == before
    CALLS[call](world, world.patient)
    assert [world.count(table) for table in TABLES] != before

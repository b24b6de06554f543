"""A cloud to break: conductors, scheduler and agent as processes that may be killed.

PostgreSQL, and RabbitMQ behind a proxy that can be cut, are real; the simulator and placement run
in the tests' process. There is no Keystone and no API: requests go to the conductors as the API
sends them. Services are forked by a nursery, so a dead one is replaced in a moment.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from keystoneauth1 import adapter, session, token_endpoint

from common import rpc
from common.errors import MicronovaError
from conductor.rpc import connect
from db import schema
from identity.private_file import write_private
from launcher import configuration
from launcher.embedded.settings import render
from placement.client import PlacementClient
from simulator.server import Options
from tests.chaos import dressing
from tests.chaos.cloud import Cloud
from tests.chaos.director import GO, MESSAGE, Director
from tests.chaos.doors import WatchedSimulator, watched_placement
from tests.chaos.image_door import ImageDoor, image_door
from tests.chaos.nursery import Nursery
from tests.chaos.proxy import Proxy
from tests.chaos.settings import carries, sections
from tests.fixtures.auth import SERVICE
from tests.functional import backends, brokers

START_SECONDS = 240
NODES = 2
SPEED = 400.0
DOWN_SECONDS = 4


class Party(StrEnum):
    """A node's part in a move, or in what is done with volumes."""

    SOURCE = "source"
    TARGET = "target"
    HOLDER = "holder"  #: has the first volume's holder
    SERVER = "server"  #: has the server


@dataclasses.dataclass
class Plan:
    """What a stage has."""

    conductors: int = 2
    schedulers: int = 1
    driver: str = "proxmox"
    options: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    images: int = 0
    """Further images, so that builds can be the first of theirs."""
    speed: float = SPEED
    nodes: int = NODES
    workers: int = 1
    """Workers of each cluster's agents."""
    clusters: int = 1
    """Workers are named by the cluster, as ``compute-2``, and ``compute-2b`` for the second one
    of a cluster."""


class Stage(Cloud):
    """The running cloud: what can be asked of one, and ``kill`` and ``cut`` to break it."""

    def __init__(self, folder: Path, plan: Plan, stack: contextlib.ExitStack) -> None:
        super().__init__()
        backends.require(backends.INITDB, backends.POSTGRES, backends.RABBITMQ, backends.EPMD)
        self.folder, self.plan = folder, plan
        (folder / "log").mkdir(parents=True)
        self.director = Director(folder / "director")
        stack.callback(self.director.close)
        postgres = stack.enter_context(backends.postgres())
        self.broker = stack.enter_context(brokers.broker())
        bus = urlsplit(self.broker.url)
        self.proxy = Proxy(bus.port or 0)
        stack.callback(self.proxy.close)
        login = f"{bus.username}:{bus.password}"
        self._bus = f"rabbit://{login}@127.0.0.1:{self.proxy.port}/"
        self.database_url = dressing.databases(postgres)
        self.placement_url = stack.enter_context(
            watched_placement(postgres.url("placement"), self.director)
        )
        options = Options(
            folder / "simulator",
            clusters=plan.clusters,
            nodes=plan.nodes,
            speed=plan.speed,
            tls=True,
            node_endpoints=True,
        )
        self.simulator = WatchedSimulator(options, self.director)
        self.simulator.start()
        stack.callback(self.simulator.stop)
        for cluster in self.simulator.clusters:
            dressing.put_images(cluster, plan.images)
            dressing.grant(cluster, self.simulator.token)
            dressing.add_zone(cluster, self.simulator.token)
        self.engine = sa.create_engine(self.database_url)
        stack.callback(self.engine.dispose)
        self._nursery = Nursery(folder / "log" / "nursery.log")
        stack.callback(self._nursery.close)
        self._pids: dict[str, int] = {}
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._failed: list[Exception] = []
        self.lost_nodes: list[str] = []
        """Nodes that lost power, in the order of that."""
        self.hands = threading.Thread(target=self._stagehands, name="stagehands", daemon=True)
        self.hands.start()
        self.services = self._configure()
        for name in self.services:
            self._start(name)
        self.conf = configuration.load([str(folder / "stage.conf")])
        self._stack = stack
        self.transport = rpc.transport(self.conf)
        # Else it would look for its broker for ever, and the next one may have the port.
        stack.callback(self.transport.cleanup)
        self.client = connect(self.transport)
        login_session = session.Session(auth=token_endpoint.Token(self.placement_url, SERVICE))
        self.placement = PlacementClient(adapter.Adapter(login_session, service_type="placement"))
        self.until(self._hosts_are_known, START_SECONDS)

    @functools.cached_property
    def image_door(self) -> ImageDoor:
        """The Image API beside it, once a story needs it."""
        spool = self.folder / "spool"
        door = image_door(self.conf, self.database_url, self.client, spool)
        return self._stack.enter_context(door)

    def _ask(self, method: str, call: Callable[[], Any]) -> None:
        verdict, ticket = self.director.before("client", MESSAGE, method)
        if verdict == GO:
            super()._ask(method, call)
        self.director.after("client", ticket)

    # --- breaking

    def kill(self, *names: str) -> None:
        """SIGKILL, then as a service manager does: start it again. Their leases are over."""
        for name in names:
            with self._lock:
                pid = self._pids.pop(name, None)
            if pid is None:
                continue
            self._nursery.end(pid)
            self.later(lambda name=name: self._revive(name))  # type: ignore[misc]

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a process, with SIGTERM in order, and leave it ended."""
        with self._lock:
            pid = self._pids.pop(name)
        self._nursery.end(pid, number)

    def start(self, name: str) -> None:
        """Start a process that has ended; nothing is done about its leases."""
        self._start(name)

    def _revive(self, name: str) -> None:
        self.end_leases(name, f"compute:{name}@%")
        self._start_missing(name)

    def cut(self, seconds: float = 1.0) -> None:
        """No message passes for so long."""
        self.proxy.cut()
        # Not the stagehands: what they start may wait for the broker.
        mender = threading.Timer(seconds, self.proxy.mend)
        mender.daemon = True
        mender.start()

    def restart_broker(self, seconds: float = 1.0) -> None:
        """Stop the broker, and start it after so long: only durable queues are left."""

        def restart() -> None:
            self.broker.stop()
            threading.Event().wait(seconds)
            self.broker.start()

        self.later(restart)

    def lose_node(self, party: Party) -> None:
        """A node of what is under way loses power, with what runs there, for a while.

        Before a target is chosen only the source of a move is one.
        """
        node = self._party(party)
        if node is not None:
            self.lost_nodes.append(node)
            self.simulator.fault(
                action="node-down", node=node, seconds=DOWN_SECONDS * self.plan.speed
            )

    def _party(self, party: Party) -> str | None:
        """The node of the last move; without a move the server's, and the first other one."""
        if party == Party.HOLDER:
            volumes = schema.volumes.c
            query = sa.select(volumes.node).where(volumes.node.is_not(None))
            return next((row.node for row in self.rows(query.order_by(volumes.created_at))), None)
        servers, moves = schema.servers.c, schema.migrations.c
        alive = self.rows(
            sa.select(servers.uuid, servers.node).where(servers.deleted_at.is_(None))
        )
        mine = moves.server_uuid.in_([row.uuid for row in alive])
        query = sa.select(moves.source_node, moves.dest_node).where(mine)
        last = self.rows(query.order_by(moves.id.desc()).limit(1))
        if party == Party.SERVER:
            return next((row.node for row in alive), None)
        if last:
            source, target = last[0]
        else:
            source = next((row.node for row in alive), None)
            hosts = self.rows(sa.select(schema.hosts.c.node).order_by(schema.hosts.c.host))
            target = next((row.node for row in hosts if row.node != source), None)
        node: str | None = source if party == Party.SOURCE else target
        return node

    def later(self, work: Callable[[], None]) -> None:
        """Have the stagehands do something, one thing after the other."""
        self._work.put(work)

    def calm(self) -> None:
        """See ``Cloud.calm``: and processes that were killed run again."""
        self.settle()

    def settle(self) -> None:
        """Return when all is well again: no fault is armed, the proxy is whole, all run."""
        self.director.disarm()
        self.simulator.clear_faults()
        done = threading.Event()
        self.later(done.set)
        assert done.wait(START_SECONDS)
        assert not self._failed, self._failed
        self.proxy.mend()
        for name in self.services:
            self._start_missing(name)

    def of_role(self, role: str) -> list[str]:
        """Names of the processes of a service."""
        return [name for name in self.services if name.startswith(f"{role}-")]

    def pause(self, name: str, paused: bool = True) -> None:
        """Have a process stand still, with all its threads once this returns, or go on."""
        pid = self._pids[name]
        os.kill(pid, signal.SIGSTOP if paused else signal.SIGCONT)
        while paused and not _stands_still(pid):
            threading.Event().wait(0.01)

    def log(self, name: str) -> str:
        """What a process has logged."""
        path = self.folder / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # --- inner

    def _stagehands(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - `settle` reports it, and the others go on
                self._failed.append(error)

    def _start_missing(self, name: str) -> None:
        """Start it once, though both the stagehands and `settle` may ask."""
        with self._starting:
            if name not in self._pids:
                self._start(name)

    def _start(self, name: str) -> None:
        ready = self.director.ready(name)
        ready.clear()
        kind = name.partition("-")[0]
        files = [str(self.folder / "stage.conf"), str(self.folder / f"{name}.conf")]
        log = str(self.folder / "log" / f"{name}.log")
        pid = self._nursery.start(name, kind, files, log, str(self.director.path))
        with self._lock:
            self._pids[name] = pid
        assert ready.wait(START_SECONDS), f"{name} does not start: {self.log(name)[-3000:]}"

    def _configure(self) -> list[str]:
        names = [f"conductor-{number + 1}" for number in range(self.plan.conductors)]
        names += [f"scheduler-{number + 1}" for number in range(self.plan.schedulers)]
        carried = {
            f"compute-{number + 1}{'' if turn == 0 else chr(ord('a') + turn)}": endpoint
            for number, endpoint in enumerate(self.simulator.endpoints[: self.plan.clusters])
            for turn in range(self.plan.workers)
        }
        names += carried
        made = sections(
            self._bus,
            self.database_url,
            self.placement_url,
            self.simulator,
            self.folder / "simulator",
            self.plan.driver,
        )
        for section, values in self.plan.options.items():
            made.setdefault(section, {}).update(values)
        write_private(self.folder / "stage.conf", render(made))
        for name in names:
            kind = name.partition("-")[0]
            own = {"worker": name} if kind == "compute" else {"name": name}
            more = carries(carried[name], made) if name in carried else {}
            write_private(self.folder / f"{name}.conf", render({kind: own, **more}))
        return names

    def _hosts_are_known(self) -> bool:
        """Agents have reported all that exists to conductors, schedulers and placement."""
        images = self.rows(sa.select(sa.func.count()).select_from(schema.images))[0][0]
        hosts = self.rows(sa.select(schema.hosts.c.uuid))
        if not hosts or images < self.plan.images:
            return False
        try:
            usages = [self.placement.provider_usages(row.uuid) for row in hosts]
        except MicronovaError:
            return False
        return all(usages)


def _stands_still(pid: int) -> bool:
    """Whether every thread of a process is stopped."""
    found = [
        path.read_text().rpartition(")")[2].split()[0]
        for path in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return set(found) == {"T"}


@contextlib.contextmanager
def stage(folder: Path, plan: Plan | None = None, *, audited: bool = True) -> Iterator[Stage]:
    """Run a stage until the block ends; some fifteen seconds to start.

    Then it must be clean, see ``Cloud.require_clean``; ``audited`` False: who uses it, asserts it.
    """
    with contextlib.ExitStack() as stack:
        running = Stage(folder, plan or Plan(), stack)
        yield running
        if audited:
            running.require_clean()

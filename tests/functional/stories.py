"""What may happen to the processes of a cloud, each while clients create servers.

with whole_cloud(folder) as stage:
    result = play(stage, STORIES[0])
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from openstack.compute.v2.server import Server

from common import clock
from common.messages.tenures import worker_of
from db.schema import agent_leases
from tests.functional import load, programs
from tests.functional.brokers import Broker, Cluster
from tests.functional.client import Client
from tests.functional.distributed import SECOND_API, DistributedCloud, distributed_cloud
from tests.functional.load import WAIT_SECONDS, Outcome
from tests.functional.postgres_pair import Pair
from tests.functional.waiting import eventually

FROZEN_SECONDS = 90
#: until a service manager starts again what has died, and a person what was switched off
AWAY_SECONDS = 10
#: as long as a story without an end of its own lasts
SECONDS = 30
CLIENTS, PAUSE_SECONDS = 2, 1.0

_UNBEGUN = """
    SELECT uuid FROM servers AS s WHERE NOT EXISTS (
        SELECT 1 FROM operations AS o JOIN operation_events AS e ON e.operation_id = o.id
        WHERE o.resource_id = s.uuid AND e.name LIKE 'compute\\_%')
"""
"""Servers with which no agent has begun."""

_OF_SECOND_MACHINE = {
    "API": SECOND_API,
    "placement": "placement-2",
    "conductor": "conductor-2",
    "scheduler": "scheduler-2",
}
"""{service: the process that something happens to}; of agents, it is the worker that has them."""
_AGENT = "agent"
_AGENTS = ("compute-east-1", "compute-east-2")


@dataclass
class Stage:
    """A cloud with two of each service, PostgreSQL with a replica and three brokers."""

    cloud: DistributedCloud
    clocks: dict[str, Path]
    unbegun: frozenset[str] = frozenset()
    """Servers that may be lost with their commits: no agent had them when the database died."""

    @property
    def pair(self) -> Pair:
        """The databases."""
        assert self.cloud.pair is not None
        return self.cloud.pair

    def process_of(self, service: str) -> str:
        """Return the process of a service that something happens to."""
        return self.active_agent() if service == _AGENT else _OF_SECOND_MACHINE[service]

    def active_agent(self) -> str:
        """Return the agents' process that has the lease, once there is one."""
        engine = sa.create_engine(self.pair.url("micronova"))
        lasting = sa.select(agent_leases.c.worker).where(
            agent_leases.c.expires_at > clock.utcnow()
        )

        def holder() -> str | None:
            with engine.connect() as connection:
                found = connection.execute(lasting).scalars().all()
            return worker_of(found[0]) if found else None

        worker: str = eventually(holder, 60)
        engine.dispose()
        return worker.replace("agent-", "compute-", 1)

    @property
    def brokers(self) -> Cluster:
        """The message bus."""
        assert self.cloud.cluster is not None
        return self.cloud.cluster


@dataclass(frozen=True)
class Story:
    """Something that happens to a service; ``act`` returns when it is over."""

    of: str
    what: str
    act: Callable[[Stage], None]
    refuses: bool = False
    """Whether clients may meet errors: what happens to it leaves nothing that could answer."""
    clients: int = CLIENTS
    least: int = 1
    """How many servers are accepted at least."""

    @property
    def name(self) -> str:
        """A short name without spaces."""
        return f"{self.of}-{self.what}".replace(" ", "-").replace(",", "")


@dataclass(frozen=True)
class Result:
    """What became of the requests of clients during a story."""

    of: str
    what: str
    outcome: Outcome
    seconds: float
    """From the beginning of what happened until all that was asked for was made."""

    def as_json(self) -> dict[str, object]:
        """Return it as JSON."""
        fields = {"of": self.of, "what": self.what, **dataclasses.asdict(self.outcome)}
        return {**fields, "seconds": round(self.seconds, 1)}

    def row(self) -> str:
        """Return the row of a page's table."""
        one = self.outcome
        cells = [self.of, self.what, one.accepted, one.made, one.errors, len(one.wrong)]
        cells += [f"{one.longest_seconds:.0f}", f"{self.seconds:.0f}"]
        return f"| {' | '.join(map(str, cells))} |"


TABLE = (
    "| of | what happens | accepted | made | errors | wrong | longest answer, s | seconds |\n"
    "|---|---|---|---|---|---|---|---|"
)


@contextlib.contextmanager
def whole_cloud(folder: Path, *, audited: bool = True) -> Iterator[Stage]:
    """Run a cloud of two of everything in a folder."""
    folder.chmod(0o755)
    moved = (*_OF_SECOND_MACHINE.values(), *_AGENTS)
    clocks = {name: folder / f"clock-{name}" for name in moved}
    for file in clocks.values():
        file.write_text("+0\n")
    state = folder / "cloud"
    state.mkdir()
    with distributed_cloud(
        state, clocks=clocks, proxy="haproxy", spare=True, audited=audited
    ) as cloud:
        yield Stage(cloud, clocks)


def play(stage: Stage, story: Story) -> Result:
    """Have it happen while clients create servers; nothing of these may be left in the end."""
    compute, stage.unbegun = stage.cloud.connection().compute, frozenset()
    with load.work(stage.cloud) as what:
        with load.creating(
            **what, prefix=story.name.lower(), clients=story.clients, pause=PAUSE_SECONDS
        ) as made:
            eventually(lambda: len(made.accepted) >= story.clients, 60)
            began = time.monotonic()
            story.act(stage)
            before = len(made.accepted)
            # It is over when clients are answered again.
            enough = max(before + CLIENTS + 1, story.least)
            eventually(lambda: len(made.accepted) >= enough, 120)
        eventually(lambda: not made.building(compute), WAIT_SECONDS)
        seconds = time.monotonic() - began
        outcome = made.outcome(compute, stage.unbegun)
    return Result(story.of, story.what, outcome, seconds)


def wait(seconds: float) -> None:
    """Let time pass for a client."""
    threading.Event().wait(seconds)


# --- processes


def kill(stage: Stage, name: str) -> None:
    """It dies, and its service manager starts it again."""
    stage.cloud.kill(name)
    wait(AWAY_SECONDS)
    stage.cloud.restart(name)
    wait(AWAY_SECONDS)


def stop(stage: Stage, name: str) -> None:
    """It is asked to end, and started again after its end."""
    child = stage.cloud.children[name]
    child.signal(signal.SIGTERM)
    eventually(lambda: child.pid is None, 90)
    stage.cloud.restart(name)
    wait(AWAY_SECONDS)


def freeze(stage: Stage, name: str) -> None:
    """It stands still, with all its connections open."""
    stage.cloud.kill(name, signal.SIGSTOP)
    try:
        wait(FROZEN_SECONDS)
    finally:
        stage.cloud.kill(name, signal.SIGCONT)
    wait(AWAY_SECONDS)


def step_clock(stage: Stage, name: str, seconds: int) -> None:
    """Its machine's clock is off for a while."""
    stage.clocks[name].write_text(f"{seconds:+d}\n")
    try:
        wait(SECONDS)
    finally:
        stage.clocks[name].write_text("+0\n")
    wait(AWAY_SECONDS)


def upgrade(stage: Stage) -> None:
    """All are replaced, in the order of docs/deploy.md."""
    order = ("conductor-", "scheduler-", "placement", "compute", "compute-east")
    done: list[str] = []
    for begins in order:
        for name in stage.cloud.children:
            if name.startswith(begins) and (name in _AGENTS) == (begins == "compute-east"):
                stop(stage, name)
                done.append(name)
    assert set(done) == set(stage.cloud.children)


# --- the bus


def lose_brokers(stage: Stage, count: int) -> None:
    """So many nodes lose their power, and come back."""
    lost = stage.brokers.nodes[-count:]
    for node in lost:
        node.kill()
    wait(2 * AWAY_SECONDS)
    stage.brokers.start(*lost)
    wait(AWAY_SECONDS)


def freeze_broker(stage: Stage) -> None:
    """A node stands still."""
    node: Broker = stage.brokers.nodes[-1]
    node.signal(signal.SIGSTOP)
    try:
        wait(FROZEN_SECONDS)
    finally:
        node.signal(signal.SIGCONT)
    wait(AWAY_SECONDS)


def cut_bus(stage: Stage) -> None:
    """All connections are cut, three times."""
    for _ in range(3):
        stage.brokers.control(["close_all_connections", "cut"])
        wait(AWAY_SECONDS)


# --- the database


def cut_database(stage: Stage) -> None:
    """All connections of clients are cut, three times."""
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    for _ in range(3):
        stage.pair.execute(cut)
        wait(AWAY_SECONDS)


def restart_database(stage: Stage) -> None:
    """The primary loses its power, and comes back."""
    stage.pair.primary.kill()
    wait(AWAY_SECONDS)
    stage.pair.primary.start()
    wait(AWAY_SECONDS)


def freeze_database(stage: Stage) -> None:
    """The primary stands still, and nobody takes over."""
    stage.pair.primary.freeze()
    try:
        wait(FROZEN_SECONDS)
    finally:
        stage.pair.primary.thaw()
    wait(AWAY_SECONDS)


def fail_over(stage: Stage) -> None:
    """The primary dies, and its synchronous replica is promoted."""
    stage.pair.make_synchronous()
    stage.pair.primary.kill()
    wait(5)
    stage.pair.swap()
    wait(AWAY_SECONDS)
    stage.pair.rebuild_replica()


def fail_over_from_frozen(stage: Stage) -> None:
    """The primary stands still, its synchronous replica is promoted, and it comes back: there are
    two primaries then."""
    stage.pair.make_synchronous()
    former = stage.pair.primary
    former.freeze()
    try:
        wait(5)
        stage.pair.swap()
        wait(SECONDS)
    finally:
        former.thaw()
    wait(SECONDS)
    stage.pair.rebuild_replica()


def fail_over_behind(stage: Stage) -> None:
    """The replica that is promoted lacks the last commits; an operator decides."""
    stage.pair.cut_replication()
    wait(AWAY_SECONDS)
    stage.pair.primary.kill()
    stage.unbegun = frozenset(stage.pair.primary.last_values(_UNBEGUN, "micronova"))
    stage.pair.swap()
    restore(stage)
    stage.pair.rebuild_replica()


def restore(stage: Stage) -> None:
    """Wait until the record is known to be older than the clusters, and decide."""
    eventually(lambda: "put back" in stage.cloud.answer("conductor-1", "readyz"), 120)
    environment = stage.cloud.environment("micronova-admin")

    eventually(lambda: _succeeds(["restore", "--apply"], environment), 120, 5)


def put_back(stage: Stage) -> None:
    """A backup is made under load; servers are made and deleted since; it is put back, in the
    order of docs/operate.md, and an operator decides."""
    cloud, files = stage.cloud, ["--config-file", str(stage.cloud.folder / "owners.conf")]
    folder, environment = cloud.folder / "saved", cloud.environment("micronova-admin")
    owner = Client(cloud)
    deleted = [owner.create(f"deleted-since-{number}") for number in range(2)]
    for one in deleted:
        owner.compute.wait_for_server(one, wait=120)
    assert _succeeds(["backup", *files, str(folder)], environment)
    for one in deleted:
        owner.compute.delete_server(one)
    for one in deleted:
        owner.compute.wait_for_delete(one, wait=120)
    wait(AWAY_SECONDS)
    _end(stage, ["compute", SECOND_API])
    building = "SELECT count(*) FROM servers WHERE vm_state = 'building' AND deleted_at IS NULL"
    eventually(lambda: stage.pair.primary.value(building, "micronova") == 0, 120)
    _end(stage, list(cloud.children))
    again = ["restore", *files, "--from", str(folder), "--apply"]
    eventually(lambda: _succeeds(again, environment), 60, 5)
    for child in cloud.children.values():
        child.start()
    for name in cloud.children:
        cloud.wait_started(name)
    restore(stage)
    # They were deleted since: the record had them again, and says that they are lost.
    for one in deleted:
        eventually(functools.partial(_is_in_error, owner, one), 60)
        owner.compute.delete_server(one)


def _is_in_error(owner: Client, server: Server) -> bool:
    return bool(owner.compute.get_server(server.id).status == "ERROR")


def _end(stage: Stage, names: Sequence[str]) -> None:
    children = [stage.cloud.children[name] for name in names]
    for child in children:
        child.signal(signal.SIGTERM)
    eventually(lambda: all(child.pid is None for child in children), 90)


def _succeeds(words: list[str], environment: dict[str, str]) -> bool:
    done = programs.run("micronova", words, environment)
    print(done.stdout, done.stderr)
    return done.returncode == 0


def end_keystone(stage: Stage) -> None:
    """Keystone dies, and comes back."""
    stage.cloud.keystone.stop()
    wait(2 * AWAY_SECONDS)
    stage.cloud.keystone.start()
    stage.cloud.keystone.wait_ready(WAIT_SECONDS)
    wait(AWAY_SECONDS)


def _of(service: str, what: str, act: Callable[[Stage, str], None]) -> Story:
    return Story(service, what, lambda stage: act(stage, stage.process_of(service)))


def _clock(service: str, seconds: int) -> Story:
    return _of(
        service, f"clock {seconds:+d} s", lambda stage, one: step_clock(stage, one, seconds)
    )


def _services() -> Iterator[Story]:
    for service in (*_OF_SECOND_MACHINE, _AGENT):
        yield _of(service, "kill", kill)
        yield _of(service, "stop", stop)
        yield _of(service, f"freeze {FROZEN_SECONDS} s", freeze)
        yield _clock(service, 120)
        yield _clock(service, -120)


STORIES: Sequence[Story] = (
    *_services(),
    Story("broker", "lose one of three", lambda stage: lose_brokers(stage, 1)),
    Story("broker", "lose two of three", lambda stage: lose_brokers(stage, 2), refuses=True),
    Story("broker", "lose all", lambda stage: lose_brokers(stage, 3), refuses=True),
    # A call whose answer a frozen node has is refused after its time.
    Story("broker", f"freeze {FROZEN_SECONDS} s", freeze_broker, refuses=True),
    Story("broker", "cut", cut_bus),
    Story("database", "kill", restart_database, refuses=True),
    Story("database", f"freeze {FROZEN_SECONDS} s", freeze_database, refuses=True),
    Story("database", "cut", cut_database, refuses=True),
    Story("database", "fail-over", fail_over, refuses=True, clients=6, least=30),
    Story("database", "fail-over, two primaries", fail_over_from_frozen, refuses=True),
    Story("database", "fail-over, restore", fail_over_behind, refuses=True),
    Story("database", "backup put back", put_back, refuses=True),
    Story("Keystone", "kill", end_keystone, refuses=True),
    Story("all", "upgrade", upgrade),
)

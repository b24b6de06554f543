"""docs/troubleshoot.md by symptom, on a cloud of separate services behind nginx.

PostgreSQL, RabbitMQ and the APIs' processes are really stopped, and the disk of the database is
really full. `systemctl`, of the page's remedies, starts them.
"""

from __future__ import annotations

import configparser
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from identity.private_file import write_private
from tests.fixtures.small_disk import fill, small_disk
from tests.functional import backends, nginx, postgres_pair
from tests.functional.distributed import SECOND_API, DistributedCloud, distributed_cloud
from tests.functional.pages.played import Player
from tests.functional.pages.reading import Desk
from tests.functional.pages.test_troubleshoot import CREATE, read
from tests.functional.postgres_pair import Member
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400), pytest.mark.filterwarnings("ignore")]

APIS = ("compute", SECOND_API)
#: of an operator who sees all: the conductor's files, and how the APIs check tokens
FILES = ("micronova", "conductor", "conductor-1", "check")
#: what a thread starts ends with it
HANDS = ThreadPoolExecutor(1)


@dataclass(frozen=True)
class Site:
    """A cloud, its database and where that is."""

    cloud: DistributedCloud
    database: Member
    disk: Path
    player: Player


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if nginx.NGINX is None:
        pytest.skip("nginx is not installed on this machine")
    folder = tmp_path_factory.mktemp("services")
    with contextlib.ExitStack() as stack:
        # which PostgreSQL's user may pass through
        private = stack.enter_context(backends.private_folder())
        disk = stack.enter_context(small_disk(private / "disk", 500))
        database = stack.enter_context(postgres_pair.single(disk))
        cloud = stack.enter_context(
            distributed_cloud(folder, database=database, proxy="nginx", audited=False)
        )
        (folder / "home").mkdir()
        desk = Desk(folder / "home")
        stack.callback(desk.close)
        [cluster] = json.loads((folder / "simulator" / "endpoints.json").read_text())
        desk.on_a_node(cluster["url"], folder / "simulator")
        write_check(folder)
        files = os.pathsep.join(str(folder / f"{name}.conf") for name in FILES)
        environment = cloud.environment("micronova-admin") | {"MICRONOVA_CONFIG": files}
        desk.install("systemctl", systemctl(units(cloud, database)))
        desk.run(f"{CREATE} --network vmbr0 --wait web", environment)
        player = Player(desk, environment, places={"/var/lib/postgresql": str(disk)})
        yield Site(cloud, database, disk, player)


def write_check(folder: Path) -> None:
    """Write the login by which the APIs check tokens, alone."""
    found = configparser.RawConfigParser()
    found.read(folder / "compute-metrics.conf")
    lines = [f"{name} = {value}" for name, value in found["keystone_authtoken"].items()]
    write_private(folder / "check.conf", "\n".join(["[keystone_authtoken]", *lines]))


def units(cloud: DistributedCloud, database: Member) -> Mapping[str, Callable[[], None]]:
    """Unit → what starts it here."""

    def apis() -> None:
        for name in APIS:
            cloud.restart(name)

    return {
        "rabbitmq-server": cloud.broker.start,
        "postgresql": database.start,
        "micronova-api@compute": apis,
    }


def systemctl(units: Mapping[str, Callable[[], None]]) -> Callable[[Sequence[str]], bool]:
    """Return what `systemctl restart` does here."""

    def act(words: Sequence[str]) -> bool:
        match words:
            case ["restart", unit] if unit in units:
                HANDS.submit(units[unit]).result()
                return True
        return False

    return act


def test_the_message_bus_is_lost(site: Site) -> None:
    site.cloud.broker.stop()
    read(site.player, "The message bus is lost")


def test_the_database_is_lost(site: Site) -> None:
    site.database.stop()
    read(site.player, "The database is lost")


def test_the_disk_of_the_database_is_full(site: Site) -> None:
    fill(site.disk, "before-the-upgrade.sql")
    heading = "The disk of the database is full"
    read(site.player, heading, 0)
    compute = site.cloud.connection("micronova-admin").compute
    create = f"{CREATE} --network vmbr0 --min 50 --max 50 many 2>&1 || true"

    def refused() -> bool:
        said = site.player.desk.run(create, site.player.environment)
        return "503" in said and heading in said

    # PostgreSQL fills the pages that it has first.
    eventually(refused, 120)
    read(site.player, heading, 1)
    eventually(lambda: all(one.status == "ACTIVE" for one in compute.servers()), 240)


def test_clients_get_502(site: Site) -> None:
    for name in APIS:
        site.cloud.kill(name)
    read(site.player, "Clients get 502, 503 or no answer")

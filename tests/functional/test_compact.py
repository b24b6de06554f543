"""The fewest processes of a deployment: conductors choose hosts, one process serves every API."""

from __future__ import annotations

import collections
import concurrent.futures
import signal
from collections.abc import Iterator

import pytest

from tests.functional.distributed import DistributedCloud, distributed_cloud
from tests.functional.test_distributed import Client, assert_nothing_is_left, statuses
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(2400)]

WAIT_SECONDS = 300
SERVERS = 8


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributedCloud]:
    with distributed_cloud(tmp_path_factory.mktemp("compact"), compact=True) as running:
        yield running


def test_its_conductors_are_schedulers_too(cloud: DistributedCloud) -> None:
    compute = cloud.connection("micronova-admin").compute

    def up() -> collections.Counter[str]:
        return collections.Counter(one.binary for one in compute.services() if one.state == "up")

    eventually(lambda: up()["nova-scheduler"] == up()["nova-conductor"] == 2)
    assert not [name for name in cloud.children if name.startswith(("scheduler", "placement"))]


def test_servers_are_placed_and_explained(cloud: DistributedCloud) -> None:
    client = Client(cloud)
    with concurrent.futures.ThreadPoolExecutor(SERVERS) as pool:
        servers = list(pool.map(client.create, [f"placed-{n}" for n in range(SERVERS)]))
    eventually(lambda: set(statuses(client.compute).values()) == {"ACTIVE"}, WAIT_SECONDS)
    admin = cloud.connection("micronova-admin").compute
    assert len({one.compute_host for one in admin.servers(all_projects=True)}) == 3
    found = admin.get(f"/explanations/{servers[0].id}").json()["explanation"]["operations"][0]
    assert found["decisions"][0]["host"] in {"pve1", "pve2", "pve3"}, found
    _delete_all(client)
    assert_nothing_is_left(cloud)


def test_a_conductor_that_is_killed_while_it_places_loses_nothing(cloud: DistributedCloud) -> None:
    client = Client(cloud)
    for number in range(SERVERS):
        client.create(f"killed-{number}")
    cloud.kill("conductor-1", signal.SIGKILL)
    eventually(lambda: set(statuses(client.compute).values()) == {"ACTIVE"}, WAIT_SECONDS)
    cloud.restart("conductor-1")
    _delete_all(client)
    assert_nothing_is_left(cloud)


def test_a_server_that_fits_nowhere_is_explained(cloud: DistributedCloud) -> None:
    admin, client = cloud.connection("micronova-admin").compute, Client(cloud)
    huge = admin.create_flavor(name="huge", ram=10**7, vcpus=1, disk=1)
    what = client._what | {"flavor_id": huge.id}
    server = client.compute.create_server(name="huge", **what)
    eventually(lambda: statuses(client.compute) == {"huge": "ERROR"}, WAIT_SECONDS)
    fault = client.compute.get_server(server.id).fault
    assert "No valid host" in fault["message"]
    _delete_all(client)
    admin.delete_flavor(huge)


def _delete_all(client: Client) -> None:
    for one in client.compute.servers(details=False):
        client.compute.delete_server(one.id)
    eventually(lambda: not statuses(client.compute), WAIT_SECONDS)

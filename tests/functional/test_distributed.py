"""The services as separate processes on PostgreSQL, RabbitMQ and memcached."""

from __future__ import annotations

import concurrent.futures
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kombu
import pytest
import requests
import sqlalchemy as sa

from common.process.child import ROOT, Child
from identity.private_file import write_private
from launcher import configuration
from launcher.doctor import bus
from launcher.embedded.settings import render
from tests.functional import backends
from tests.functional.client import Client, assert_nothing_is_left, statuses
from tests.functional.cloud import eventually
from tests.functional.distributed import DistributedCloud, distributed_cloud
from tests.functional.monitor import prometheus
from tests.functional.monitor.test_promtool import promtool

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(2400)]

CLIENTS = 8
WAIT_SECONDS = 300
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}|[0-9a-f]{32}")
PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN me@laptop"
)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributedCloud]:
    """One cloud for all tests here."""
    with distributed_cloud(tmp_path_factory.mktemp("distributed")) as running:
        yield running


def test_services_are_seen(cloud: DistributedCloud) -> None:
    compute = cloud.connection("micronova-admin").compute
    wanted = ["micronova-agent"] * 3 + ["nova-compute"] * 3
    wanted += ["nova-conductor"] * 2 + ["nova-scheduler"] * 2
    # A sign of life that was sent before a conductor listened is lost; the next one isn't.
    eventually(
        lambda: sorted(one.binary for one in compute.services() if one.state == "up") == wanted
    )


def test_the_apis_role_cannot_write(cloud: DistributedCloud) -> None:
    text = (cloud.folder / "api.conf").read_text()
    url = text.partition("reader_connection = ")[2].split()[0]
    engine = sa.create_engine(url)
    try:
        with (
            pytest.raises(sa.exc.ProgrammingError, match="permission denied"),
            engine.begin() as connection,
        ):
            connection.exec_driver_sql("DELETE FROM servers")
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM servers").scalar_one() >= 0
    finally:
        engine.dispose()


@pytest.fixture
def hasty(cloud: DistributedCloud) -> Iterator[str]:
    """The URL of one more compute API, which waits for conductors for two seconds only."""
    port = backends.free_port()
    own = cloud.folder / "hasty.conf"
    write_private(own, render({"rpc": {"rpc_timeout_seconds": "2"}, "metrics": {"port": "0"}}))
    # with the logins of the other one
    names = ("micronova", "api", "compute-metrics", "hasty")
    files = [cloud.folder / f"{name}.conf" for name in names]
    child = Child(
        "hasty",
        [
            *(sys.executable, "-m", "gunicorn", "micronova.wsgi:compute"),
            *("--config", str(ROOT / "etc" / "gunicorn.conf.py")),
            *("--bind", f"127.0.0.1:{port}", "--workers", "1"),
        ],
        cloud.folder / "log" / "hasty.log",
        extra_environment={"MICRONOVA_CONFIG": ":".join(map(str, files))},
    )
    child.start()
    try:
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: answers(url), 90)
        yield f"{url}/v2.1"
    finally:
        child.stop()


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=60).ok
    except requests.RequestException:
        return False


def test_what_a_client_gave_up_is_not_carried_out(cloud: DistributedCloud, hasty: str) -> None:
    """No conductor works while a client waits; the answer says so, and nothing follows later."""
    client = Client(cloud)
    headers = {"X-Auth-Token": cloud.connection().auth_token}
    asked = (
        ("os-keypairs", {"keypair": {"name": "late", "public_key": PUBLIC_KEY}}),
        ("servers", {"server": {"name": "late", **client.body}}),
    )
    conductors = ("conductor-1", "conductor-2")
    for name in conductors:
        cloud.kill(name, signal.SIGSTOP)
    try:
        refused = [
            requests.post(f"{hasty}/{path}", json=body, headers=headers, timeout=60)
            for path, body in asked
        ]
    finally:
        for name in conductors:
            cloud.kill(name, signal.SIGCONT)
    for answer in refused:
        assert answer.status_code == 503, answer.text
        message = answer.json()["serviceUnavailable"]["message"]
        assert "did not answer" in message
        assert "is not carried out later" in message
        assert f"/explanations/{answer.headers['X-Openstack-Request-Id']}" in message
    # Both conductors answer what comes after it, so they have seen it.
    for number in range(8):
        name = f"after-{number}"
        client.compute.create_keypair(name=name, public_key=PUBLIC_KEY)
        client.compute.delete_keypair(name)
    assert "late" not in {one.name for one in client.compute.keypairs()}
    assert statuses(client.compute) == {}


@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.long)])
def test_many_servers_at_once(cloud: DistributedCloud, count: int) -> None:
    clients = [Client(cloud) for _ in range(CLIENTS)]
    names = [f"many-{number}" for number in range(count)]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        work = [
            pool.submit(clients[number % CLIENTS].create, name)
            for number, name in enumerate(names)
        ]
        servers = [one.result(WAIT_SECONDS) for one in work]
        compute = clients[0].compute

        def settled() -> bool:
            now = statuses(compute)
            return len(now) == count and "BUILD" not in now.values()

        eventually(settled, WAIT_SECONDS, 1)
        assert statuses(compute) == dict.fromkeys(names, "ACTIVE")
        hosts = {
            one.compute_host
            for one in cloud.connection("micronova-admin").compute.servers(all_projects=True)
        }
        assert len(hosts) == 3
        list(pool.map(compute.delete_server, servers))
        eventually(lambda: not statuses(compute), WAIT_SECONDS, 1)
    assert_nothing_is_left(cloud)


def test_prometheus_scrapes_every_service(cloud: DistributedCloud, tmp_path: Path) -> None:
    """A real one: all targets are up, no alert fires, and its numbers are what was done."""
    client = Client(cloud)
    servers = [client.create(f"watched-{number}") for number in range(3)]
    eventually(lambda: set(statuses(client.compute).values()) == {"ACTIVE"}, WAIT_SECONDS)
    with prometheus.running(tmp_path, cloud.metrics_ports) as watching:
        wanted = dict.fromkeys(cloud.metrics_ports, 1.0)
        eventually(lambda: watching.by("instance_name", "up") == wanted, 60)
        eventually(lambda: watching.one('max(micronova_servers{vm_state="active"})') == 3, 60)
        assert watching.one('sum(micronova_operations_ended_total{action="create"})') >= 3
        assert watching.one("count(micronova_host_healthy == 1)") == 3
        placed = 'sum(micronova_scheduler_decisions_total{result="placed"})'
        assert watching.one(placed) >= 3
        route = 'route="/v2.1/servers",method="POST",status="202"'
        assert watching.one(f"sum(micronova_http_requests_total{{{route}}})") >= 3
        services = watching.by("binary", 'max by (binary) (micronova_services{state="up"})')
        assert services == {
            "micronova-agent": 3,
            **{"nova-compute": 3, "nova-conductor": 2, "nova-scheduler": 2},
        }
        assert watching.by("alertname", 'ALERTS{alertstate="firing"}') == {}
        assert watching.rules() > 20
    for name, port in cloud.metrics_ports.items():
        text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
        assert not _UUID.findall(text), name
        promtool("check", "metrics", text=text.encode())
        for path in ("healthz", "readyz"):
            assert requests.get(f"http://127.0.0.1:{port}/{path}", timeout=60).ok, (name, path)
    for server in servers:
        client.compute.delete_server(server)
    eventually(lambda: not statuses(client.compute), WAIT_SECONDS)


def test_a_service_that_misses_something_is_not_ready(cloud: DistributedCloud) -> None:
    def answer(name: str, path: str) -> int:
        url = f"http://127.0.0.1:{cloud.metrics_ports[name]}/{path}"
        return requests.get(url, timeout=60).status_code

    cloud.kill("placement", signal.SIGSTOP)
    conductors = ("conductor-1", "conductor-2")
    for name in conductors:
        cloud.kill(name, signal.SIGSTOP)
    try:
        eventually(lambda: answer("compute", "readyz") == 503, 30)
        assert answer("compute", "healthz") == 200
        assert answer("scheduler-1", "healthz") == 200
    finally:
        for name in (*conductors, "placement"):
            cloud.kill(name, signal.SIGCONT)
    eventually(lambda: answer("compute", "readyz") == 200, 60)
    eventually(lambda: answer("scheduler-1", "readyz") == 200, 60)


def test_the_doctor_finds_queues_that_nobody_reads(
    cloud: DistributedCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = configuration.load([str(cloud.folder / "micronova.conf")])

    def codes() -> list[str]:
        return [one.code for one in bus.bus(conf) if one.code != "bus_of_guest"]

    assert codes() == []
    make: Any = kombu.Connection
    with make(f"amqp://{str(conf.transport_url).removeprefix('rabbit://')}") as opened:
        channel = opened.channel()
        channel.queue_declare("unread", durable=False, auto_delete=False)
        monkeypatch.setitem(bus._READ, "unread", ("conductor", "Nothing."))
        monkeypatch.setitem(bus._READ, "never made", ("conductor", "Nothing."))
        try:
            assert codes() == ["queue_unread"]
        finally:
            channel.queue_delete("unread")
    monkeypatch.setattr(bus, "MANY_MESSAGES", -1)
    assert codes() == ["queue_long"] * 3
    conf.set_override("transport_url", str(conf.transport_url).replace("//", "//u:p@127.0.0.1:9,"))
    assert codes() == ["bus_host_unreachable", *["queue_long"] * 3]


@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.long)])
def test_many_volumes_at_once(cloud: DistributedCloud, count: int) -> None:
    """Eight clients make them, attach and detach them, and delete them."""
    admin, clients = cloud.connection("micronova-admin"), [Client(cloud) for _ in range(CLIENTS)]
    project = clients[0].project
    admin.block_storage.put(
        f"/os-quota-sets/{project}", json={"quota_set": {"volumes": -1, "gigabytes": -1}}
    )
    servers = [clients[0].create(f"has-volumes-{number}").id for number in range(CLIENTS)]
    eventually(
        lambda: list(statuses(clients[0].compute).values()) == ["ACTIVE"] * CLIENTS, WAIT_SECONDS
    )

    def each(act: Callable[[Client, int], Any], status: str) -> list[Any]:
        """Have the clients do it with every volume; return the answers once all are so."""
        answers = list(pool.map(lambda n: act(clients[n % CLIENTS], n), range(count)))
        eventually(lambda: clients[0].volumes() == [status] * (count if status else 0), 300, 0.5)
        return answers

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        made = each(lambda one, n: one.create_volume(servers[n % CLIENTS]), "available")
        each(lambda one, n: one.attach(servers[n % CLIENTS], made[n]), "in-use")
        each(lambda one, n: one.detach(servers[n % CLIENTS], made[n]), "available")
        each(lambda one, n: one.delete_volume(made[n]), "")
        list(pool.map(clients[0].compute.delete_server, servers))
        eventually(lambda: not statuses(clients[0].compute), WAIT_SECONDS, 1)
    admin.block_storage.delete(f"/os-quota-sets/{project}")
    assert_nothing_is_left(cloud)


@pytest.mark.parametrize(
    "name",
    [
        "conductor-1",
        pytest.param("placement", marks=pytest.mark.long),
        pytest.param("scheduler-1", marks=pytest.mark.long),
        pytest.param("compute-pve2", marks=pytest.mark.long),
    ],
)
def test_a_process_that_is_killed_loses_nothing(cloud: DistributedCloud, name: str) -> None:
    client = Client(cloud)
    names = [f"{name}-{number}" for number in range(8)]
    servers = [client.create(one) for one in names]
    cloud.kill(name, signal.SIGKILL)
    cloud.restart(name)

    def settled() -> bool:
        now = statuses(client.compute)
        return set(now) == set(names) and set(now.values()) <= {"ACTIVE", "ERROR"}

    eventually(settled, WAIT_SECONDS)
    for server in servers:
        client.compute.delete_server(server)
    eventually(lambda: not statuses(client.compute), WAIT_SECONDS)
    assert_nothing_is_left(cloud)

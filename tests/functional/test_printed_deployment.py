"""docs/deploy.md, followed by an operator to the first server of a user."""

from __future__ import annotations

import importlib.metadata
import json
import re
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openstack.exceptions
import pytest
import requests

from tests.fixtures.deployment_page import HEADERS
from tests.fixtures.pve_captures import qcow2
from tests.functional import deployment
from tests.functional.audits import Audits
from tests.functional.client import Client, statuses
from tests.functional.console.visits import enter_screen, visiting
from tests.functional.dashboard.browser import Parsed
from tests.functional.deployment import Deployment
from tests.functional.load import creating
from tests.functional.waiting import eventually
from tests.pages import block

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(2400)]

WAIT_SECONDS = 120
NODES = 3
AGENTS = "micronova-compute"
CREATE = "openstack server create --image debian-12 --flavor m1.small --network vmbr0 --wait web"
DELETE = "openstack server delete --wait web"
LOGIN = {"user": "username", "password": "password", "project": "project_name"}
"""{field of the dashboard's form: what clients call it}"""
#: of the services' and the replica's connections; the tests' own are the superuser's
ENCRYPTED = """
SELECT array_agg(DISTINCT ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
WHERE client_addr IS NOT NULL AND usename <> 'postgres'
"""


def test_a_deployment_as_the_page_prints_it(tmp_path: Path) -> None:
    with deployment.machines(tmp_path) as machines:
        first = machines[0]
        known = importlib.metadata.metadata("micronova").get_all("Provides-Extra")
        assert set(deployment.extras()) <= set(known or [])
        prepare(machines)
        with deployment.proxy(machines) as (url, _):
            start(machines)
            use_the_proxy(first, url)
            with deployment.proxy_of_one(first) as of_one:
                use_the_proxy(first, of_one)
            links_are_what_the_proxy_says(first)
            gunicorn_takes_the_worker(first)
            Audits(first).assert_clean()


def test_a_deployment_with_users_for_each_service(tmp_path: Path) -> None:
    """What may happen to it is tried here, where each service may do the least, and all servers
    of others demand TLS."""
    with deployment.machines(tmp_path, users=True) as machines:
        first, second = machines
        prepare(machines)
        with deployment.proxy(machines) as (url, states):
            start(machines)
            use_the_proxy(first, url)
            log_in(first)
            everything_is_encrypted(first)
            restart(second, url)
            agents_take_over(machines)
            fail_over(first)
            everything_is_encrypted(first)
            deployment.upgrade(machines, states)
            first.shell(CREATE)
            first.shell(DELETE)
            folders = [one.folder / "var" / "lib" / "micronova" / "log" for one in machines]
            assert '"action":"create"' in "".join(
                (folder / "audit.log").read_text() for folder in folders
            )
            Audits(first).assert_clean()


def prepare(machines: Sequence[Deployment]) -> None:
    """Everything before the services."""
    first = machines[0]
    for one in machines:
        one.install()
    first.register()
    for one in machines:
        one.configure()
    first.make_bus_user()
    first.make_synchronous()
    first.make_databases()


def start(machines: Sequence[Deployment]) -> None:
    """All services, to the first server of a user."""
    for one in machines:
        one.start_services()
    look(machines[0])
    use(machines[0])


def restart(machine: Deployment, url: str) -> None:
    """Each service of one machine, one after the other: the proxy's clients notice nothing."""
    client = Client(machine, "m1.small", "debian-12")
    machine.shell(f"openstack quota set --instances -1 --cores -1 --ram -1 {client.project}")
    asked = (f"{url}/compute/v2.1", str(machine.connection().auth_token), client.body)
    ca = str(machine.certificate / "ca.pem")
    with creating(*asked, prefix="restarted", clients=1, pause=2.0, verify=ca) as made:
        for name in machine.systemd.running:
            machine.systemd.systemctl("restart", name)
    made.assert_no_errors()
    eventually(lambda: made.settled(client.compute), WAIT_SECONDS)
    made.assert_made_once(client.compute)
    for one in client.compute.servers(details=False):
        client.compute.delete_server(one.id)
    eventually(lambda: not statuses(client.compute), WAIT_SECONDS)


def agents_take_over(machines: Sequence[Deployment]) -> None:
    """Each machine's agents stop in turn: those of the other one build what is asked for."""
    for one in machines:
        one.systemd.systemctl("stop", AGENTS)
        machines[0].shell(CREATE)
        machines[0].shell(DELETE)
        one.systemd.systemctl("enable", "--now", AGENTS)


def fail_over(machine: Deployment) -> None:
    """The primary dies, and the replica takes over: what was made before is there, and more is
    made."""
    compute = machine.connection().compute
    names = {one.name for one in compute.flavors()}
    machine.pair.fail_over()
    eventually(lambda: {one.name for one in flavors(machine)} == names, WAIT_SECONDS)
    machine.shell("openstack flavor create --vcpus 1 --ram 512 --disk 2 after")
    assert {one.name for one in compute.flavors()} == names | {"after"}


def flavors(machine: Deployment) -> list[Any]:
    try:
        return list(machine.connection().compute.flavors())
    except openstack.exceptions.HttpException:
        return []  # while no server is the primary


def look(machine: Deployment) -> None:
    """The first look: nothing is broken, all services are up and all nodes ok."""
    doctor, services, nodes, flavor = machine.lines("look")
    eventually(lambda: up(machine, services) == {"up"}, WAIT_SECONDS)
    eventually(lambda: machine.shell(nodes).count(" ok ") == NODES, WAIT_SECONDS)
    # 1: there are warnings, of what the agents' token of the simulator lacks
    said = machine.shell(doctor, cwd=machine.configuration, code=1)
    assert "broken" not in said, said
    assert "m1.small" in machine.shell(flavor)


def up(machine: Deployment, command: str) -> set[str]:
    """The states of the services."""
    said = machine.shell(f"{command} -f value -c State")
    return set(said.split())


def use(machine: Deployment) -> None:
    """A server is made through the public API, its console opened, and it is deleted."""
    machine.shell(CREATE)
    console = machine.shell("openstack console url show web -f value -c url").strip()
    assert console.startswith(f"https://{machine.address}:6080/vnc_auto.html?")
    trusted = ssl.create_default_context(cafile=machine.configuration / "console.pem")
    with visiting(console, ssl=trusted) as visitor:
        assert "web" in enter_screen(visitor)
    machine.shell(DELETE)
    url = f"http://{machine.address}:8780/dashboard/login"
    assert requests.get(url, timeout=30).status_code == 200


def log_in(machine: Deployment) -> None:
    """To the dashboard, whose sessions are in memcached here."""
    url = f"http://{machine.address}:8780/dashboard"
    given = machine.connection("micronova-demo").config.auth
    with requests.Session() as http:
        http.trust_env = False
        [form] = Parsed(http.get(f"{url}/login", timeout=30).text).forms
        fields = {name: given[key] for name, key in LOGIN.items()}
        origin = {"Origin": f"http://{machine.address}:8780"}
        http.post(f"{url}/login", data={**form.fields, **fields}, headers=origin, timeout=60)
        page = http.get(f"{url}/servers", timeout=60)
    assert page.url == f"{url}/servers", page.text


def everything_is_encrypted(machine: Deployment) -> None:
    """RabbitMQ, PostgreSQL with its replica, and memcached say so."""
    words = ("list_connections", "ssl", "ssl_protocol", "--formatter", "json", "--quiet")
    found = json.loads(machine.brokers.control(words))
    assert found
    assert {one["ssl"] for one in found} == {True}
    assert {one["ssl_protocol"] for one in found} == {"tlsv1.3"}
    assert machine.pair.primary.value(ENCRYPTED) == [True]
    assert machine.authority is not None
    trusted = ssl.create_default_context(cafile=str(machine.authority.ca))
    caches = [machine.places[f"cache{number}:11211"] for number in (1, 2)]
    assert sum(hits(one, trusted) for one in caches) > 0


def hits(cache: str, trusted: ssl.SSLContext) -> int:
    """How many keys a memcached has found."""
    host, _, port = cache.partition(":")
    with (
        socket.create_connection((host, int(port)), 30) as plain,
        trusted.wrap_socket(plain, server_hostname=host) as connection,
        connection.makefile("rwb") as file,
    ):
        file.write(b"stats\r\n")
        file.flush()
        lines = iter(file.readline, b"END\r\n")
        [found] = [int(line.split()[2]) for line in lines if b" get_hits " in line]
    return found


def use_the_proxy(machine: Deployment, url: str) -> None:
    """By one address: links, placement, and an image larger than nginx takes by default."""
    with requests.Session() as http:
        http.trust_env = False
        http.verify = str(machine.certificate / "ca.pem")
        assert current_volume_link(http.get(f"{url}/volume/")).startswith(f"{url}/volume/v3")
        if url.startswith("https:"):
            assert http.get(f"{url}/placement").json()["versions"]
        http.headers["X-Auth-Token"] = machine.connection().auth_token
        body = {"name": "mine", "disk_format": "qcow2", "container_format": "bare"}
        made = http.post(f"{url}/image/v2/images", json=body).json()
        image = f"{url}/image/v2/images/{made['id']}"
        sent = http.put(
            f"{image}/file",
            data=qcow2(1 << 30, 2 << 20),
            headers={"Content-Type": "application/octet-stream"},
        )
        assert sent.status_code == 204, sent.text
        eventually(lambda: http.get(image).json()["status"] == "active", WAIT_SECONDS)
        assert http.delete(image).status_code == 204


def current_volume_link(answer: requests.Response) -> str:
    [version] = [one for one in answer.json()["versions"] if one["status"] == "CURRENT"]
    return str(version["links"][-1]["href"])


def links_are_what_the_proxy_says(machine: Deployment) -> None:
    variables = {"$http_host": "cloud.example", "$scheme": "https", "$remote_addr": "192.0.2.9"}
    lines = re.findall(r"proxy_set_header (\S+) (\S+);", block(*HEADERS))
    headers = {name: variables.get(value, "") for name, value in lines}
    url = f"http://{machine.address}:8774/volume/"
    answer = requests.get(url, headers=headers, timeout=30)
    assert current_volume_link(answer).startswith("https://cloud.example/volume/v3")


def gunicorn_takes_the_worker(machine: Deployment) -> None:
    etc = machine.configuration
    printed = machine.shell(
        f"MICRONOVA_CONFIG={etc}/micronova.conf:{etc}/api.conf gunicorn --print-config "
        f"--config {etc}/gunicorn.conf.py micronova.wsgi:public"
    )
    assert re.search(r"worker_class\s+=.*ApiWorker", printed), printed

"""docs/deploy.md, followed by an operator to the first server of a user."""

from __future__ import annotations

import importlib.metadata
import re
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
from tests.functional.deployment import Deployment
from tests.functional.load import creating
from tests.functional.waiting import eventually
from tests.pages import block

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

WAIT_SECONDS = 120
NODES = 3
CREATE = "openstack server create --image debian-12 --flavor m1.small --network vmbr0 --wait web"
DELETE = "openstack server delete --wait web"


def test_a_deployment_as_the_page_prints_it(tmp_path: Path) -> None:
    with deployment.machines(tmp_path) as machines:
        first, second = machines
        known = importlib.metadata.metadata("micronova").get_all("Provides-Extra")
        assert set(deployment.extras()) <= set(known or [])
        prepare(machines)
        with deployment.proxy(machines) as (url, states):
            for one in machines:
                one.start_services()
            look(first)
            use(first)
            use_the_proxy(first, url)
            restart(second, url)
            fail_over(first)
            with deployment.proxy_of_one(first) as of_one:
                use_the_proxy(first, of_one)
            links_are_what_the_proxy_says(first)
            gunicorn_takes_the_worker(first)
            deployment.upgrade(machines, states)
            first.shell(CREATE)
            first.shell(DELETE)
            Audits(first).assert_clean()


def test_a_deployment_with_users_for_each_service(tmp_path: Path) -> None:
    with deployment.machines(tmp_path, users=True) as machines:
        first, second = machines
        prepare(machines)
        with deployment.proxy(machines) as (url, _):
            for one in machines:
                one.start_services()
            look(first)
            use(first)
            use_the_proxy(first, url)
            restart(second, url)
            fail_over(first)
            logs = [one.folder / "var" / "lib" / "micronova" / "audit.log" for one in machines]
            assert '"action":"create"' in "".join(log.read_text() for log in logs)
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

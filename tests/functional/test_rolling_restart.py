"""Each replica is restarted while clients create servers, behind the proxies' files of `etc/`."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from common.process.child import ROOT
from tests.functional import backends, haproxy, nginx
from tests.functional.distributed import SECOND_API, DistributedCloud, distributed_cloud
from tests.functional.load import creating
from tests.functional.test_distributed import Client, assert_nothing_is_left, statuses
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

WAIT_SECONDS = 300
API, OTHER = "compute", SECOND_API


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributedCloud]:
    folder = tmp_path_factory.mktemp("restarts")
    with distributed_cloud(folder, second_api=True) as running:
        yield running


def placed(cloud: DistributedCloud, text: str) -> str:
    """A proxy's file with the addresses and ports of this cloud."""
    ports, metrics = cloud.ports, cloud.metrics_ports
    for printed, ours in (
        ("10.0.0.10:8774", f"127.0.0.1:{ports[API]}"),
        ("10.0.0.11:8774", f"127.0.0.1:{ports[OTHER]}"),
        ("10.0.0.10:8778", f"127.0.0.1:{ports['placement']}"),
        ("10.0.0.11:8778", f"127.0.0.1:{ports['placement']}"),
    ):
        assert printed in text, printed
        text = text.replace(printed, ours)
    for name in (API, OTHER):
        text = text.replace(
            f"{ports[name]} check port 18774", f"{ports[name]} check port {metrics[name]}"
        )
    return text.replace("check port 18778", f"check port {metrics['placement']}")


@contextlib.contextmanager
def behind_haproxy(cloud: DistributedCloud, folder: Path, port: int) -> Iterator[haproxy.States]:
    text = placed(cloud, (ROOT / "etc" / "haproxy" / "haproxy.cfg").read_text())
    printed = "bind :443 ssl crt /etc/haproxy/cloud.pem alpn h2,http/1.1"
    assert printed in text
    config = folder / "haproxy.cfg"
    config.write_text(text.replace(printed, f"bind 127.0.0.1:{port}"))
    with haproxy.running(config, port) as states:
        yield states


@contextlib.contextmanager
def behind_nginx(cloud: DistributedCloud, folder: Path, port: int) -> Iterator[None]:
    if nginx.NGINX is None:
        pytest.skip("nginx is not installed on this machine")
    text = placed(cloud, (ROOT / "etc" / "nginx" / "micronova.conf").read_text())
    assert "listen 443 ssl;" in text
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    text = re.sub(r"\n *ssl_certificate.*", "", text)
    config, temporary = folder / "nginx.conf", nginx.temporary_paths(folder)
    config.write_text(f"pid {folder}/pid;\nevents {{}}\nhttp {{\n{temporary}{text}}}\n")
    with nginx.running(config, port):
        yield


@pytest.fixture(
    params=[behind_haproxy, pytest.param(behind_nginx, marks=pytest.mark.long)],
    ids=["haproxy", "nginx"],
)
def work(
    request: pytest.FixtureRequest, cloud: DistributedCloud, tmp_path: Path
) -> Iterator[dict[str, Any]]:
    """What `creating` needs to know, with the proxy's URL; all servers are deleted in the end."""
    port, proxy = backends.free_port(), request.param
    client = Client(cloud)
    what = client._what
    with proxy(cloud, tmp_path, port):
        yield {
            "url": f"http://127.0.0.1:{port}/compute/v2.1",
            "token": str(cloud.connection().auth_token),
            "body": {
                "flavorRef": what["flavor_id"],
                "imageRef": what["image_id"],
                "networks": what["networks"],
            },
        }
    for one in client.compute.servers(details=False):
        client.compute.delete_server(one.id)
    eventually(lambda: not statuses(client.compute), WAIT_SECONDS)
    assert_nothing_is_left(cloud)


def ready(cloud: DistributedCloud, name: str) -> int:
    """What a process answers to the proxy's check; 0: nothing."""
    try:
        url = f"http://127.0.0.1:{cloud.metrics_ports[name]}/readyz"
        return requests.get(url, timeout=5).status_code
    except requests.RequestException:
        return 0


def restart(cloud: DistributedCloud, name: str) -> None:
    """As its service manager does: SIGTERM, and a new process after the end of the old one."""
    child = cloud.children[name]
    child.signal(signal.SIGTERM)
    eventually(lambda: child.pid is None, 60)
    child.start()
    cloud.wait_started(name)
    eventually(lambda: ready(cloud, name) == 200, 60)


@pytest.mark.parametrize(
    "names",
    [(API, OTHER), pytest.param(("conductor-1", "conductor-2"), marks=pytest.mark.long)],
    ids=["apis", "conductors"],
)
def test_a_restart_costs_no_client_an_error(
    cloud: DistributedCloud, work: dict[str, Any], names: tuple[str, ...]
) -> None:
    compute = cloud.connection().compute
    prefix = f"restart-{names[0]}-{work['url'].split(':')[2][:5]}"
    with creating(**work, prefix=prefix, pause=0.2) as load:
        for name in names:
            eventually(lambda: load.accepted)
            restart(cloud, name)
        threading.Event().wait(3)
    load.assert_no_errors()
    eventually(lambda: load.settled(compute), WAIT_SECONDS)
    load.assert_made_once(compute)


def test_an_api_that_ends_answers_until_its_proxy_knows(cloud: DistributedCloud) -> None:
    """Its check fails first; it answers on, and closes the connections."""
    url, child = f"http://127.0.0.1:{cloud.ports[OTHER]}/compute/", cloud.children[OTHER]
    with requests.Session() as session:
        before = session.get(url, timeout=10)
        assert "close" not in before.headers.get("Connection", "")
        child.signal(signal.SIGTERM)
        eventually(lambda: ready(cloud, OTHER) == 503, 10)
        after = session.get(url, timeout=10)
        new = requests.get(url, timeout=10)
    assert [after.status_code, new.status_code] == [before.status_code] * 2
    assert after.headers["Connection"] == new.headers["Connection"] == "close"
    eventually(lambda: child.pid is None, 60)
    child.start()
    cloud.wait_started(OTHER)


def test_a_reload_leaves_an_api_ready(cloud: DistributedCloud) -> None:
    """Its new workers listen already: the proxy need not know."""
    pid = cloud.children[OTHER].pid
    eventually(lambda: ready(cloud, OTHER) == 200)
    assert pid is not None
    cloud.children[OTHER].signal(signal.SIGHUP)
    seen = {ready(cloud, OTHER) for _ in range(100)}
    assert 503 not in seen


def test_names_last(cloud: DistributedCloud) -> None:
    """A service that starts again has the row of the one before it."""
    admin = cloud.connection("micronova-admin").compute
    before = sorted((one.binary, one.host) for one in admin.services())
    for name in ("conductor-1", "scheduler-1"):
        restart(cloud, name)

    def up() -> list[tuple[str, str]]:
        return sorted((one.binary, one.host) for one in admin.services() if one.state == "up")

    eventually(lambda: up() == before)

"""Each replica is restarted while clients create servers, behind the proxies' files of `etc/`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.functional import load
from tests.functional.distributed import SECOND_API, DistributedCloud, distributed_cloud
from tests.functional.load import WAIT_SECONDS, creating
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(2400)]

API, OTHER = "compute", SECOND_API


@pytest.fixture(scope="module", params=["haproxy", pytest.param("nginx", marks=pytest.mark.long)])
def cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DistributedCloud]:
    folder = tmp_path_factory.mktemp("restarts")
    with distributed_cloud(folder, proxy=request.param) as running:
        yield running


@pytest.fixture
def work(cloud: DistributedCloud) -> Iterator[dict[str, Any]]:
    with load.work(cloud) as what:
        yield what


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
    "kind",
    [
        "compute",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("conductor", "scheduler")),
        pytest.param("placement", marks=pytest.mark.long),
    ],
)
def test_a_restart_costs_no_client_an_error(
    cloud: DistributedCloud, work: dict[str, Any], kind: str
) -> None:
    """Of each of both processes of a kind."""
    compute = cloud.connection().compute
    names = [name for name in cloud.children if name.removesuffix("-1").removesuffix("-2") == kind]
    assert len(names) == 2
    with creating(**work, prefix=f"restart-{kind}", pause=0.2) as made:
        for name in names:
            eventually(lambda: made.accepted)
            restart(cloud, name)
        threading.Event().wait(3)
    made.assert_no_errors()
    eventually(lambda: made.settled(compute), WAIT_SECONDS)
    made.assert_made_once(compute)


def test_an_api_that_freezes_costs_no_client_an_error(
    cloud: DistributedCloud, work: dict[str, Any]
) -> None:
    """The other one gets what it had, and a create that it had begun is made once."""
    states, compute = cloud.proxied, cloud.connection().compute
    if states is None:
        pytest.skip("nginx asks no API whether it lives")
    with creating(**work, prefix="frozen", pause=0.2) as made:
        eventually(lambda: made.accepted)
        cloud.kill(OTHER, signal.SIGSTOP)
        try:
            eventually(lambda: states()["public/ctl2"].startswith("DOWN"))
            before = len(made.accepted)
            eventually(lambda: len(made.accepted) > before + 3)
        finally:
            cloud.kill(OTHER, signal.SIGCONT)
        eventually(lambda: set(states().values()) == {"UP"})
    made.assert_no_errors()
    eventually(lambda: made.settled(compute), WAIT_SECONDS)
    made.assert_made_once(compute)


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

"""A simulator on a free port, asked by real proxmoxer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proxmoxer import ProxmoxAPI, ResourceException

from simulator.server import Options, Simulator
from simulator.state.access import Grant
from simulator.state.cluster import Cluster
from tests.functional.waiting import eventually

MINI: dict[str, Any] = {
    "memory": 512,
    "scsi0": "shared:0,import-from=shared:import/cirros.qcow2",
}


def connect(simulator: Simulator, url: str = "", **credentials: Any) -> Any:
    """A proxmoxer client: with the agent's token, or with the credentials given."""
    address = url or simulator.endpoints[0]["url"]
    if not credentials:
        credentials = {
            "user": simulator.token["user"],
            "token_name": simulator.token["token_name"],
            "token_value": simulator.token["secret"],
        }
    scheme, _slashes, place = address.partition("://")
    host, _colon, port = place.rpartition(":")
    certificate = str(simulator.options.state_dir / "ca.pem")
    verify = certificate if scheme == "https" else False
    return ProxmoxAPI(host, port=int(port), timeout=30, verify_ssl=verify, **credentials)


@dataclass
class Lab:
    """A simulator and a client of it."""

    simulator: Simulator
    api: Any

    def wait(self, upid: str) -> dict[str, Any]:
        """Wait for a task and return its status."""
        node = upid.split(":")[1]
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            status = self.api.nodes(node).tasks(upid).status.get()
            if status["status"] == "stopped":
                return dict(status)
            time.sleep(0.005)
        raise AssertionError(f"{upid} never ended")

    def done(self, upid: str) -> str:
        """Wait for a task and return how it ended."""
        return str(self.wait(upid)["exitstatus"])

    def create(self, vmid: int = 100, node: str = "pve1", **options: Any) -> str:
        """Create a small VM and return how that ended."""
        return self.done(self.api.nodes(node).qemu.post(vmid=vmid, **{**MINI, **options}))

    def volumes(self, vmid: int) -> list[str]:
        """Volume ids of a VM, whether or not it exists."""
        state = self.simulator.state()["sim1"]
        return sorted(one["volid"] for one in state["volumes"] if one["vmid"] == vmid)

    def lock_of(self, vmid: int) -> str | None:
        """The lock of a VM; None when there is no such VM."""
        vms = self.simulator.state()["sim1"]["vms"]
        return next((str(one["lock"]) for one in vms if one["vmid"] == vmid), None)


def refusal(call: Callable[[], Any]) -> tuple[int, str]:
    """Status and text of a call that must fail."""
    with pytest.raises(ResourceException) as caught:
        call()
    return caught.value.status_code, caught.value.content


def until(seen: Callable[[], bool]) -> None:
    """Wait for something of the simulator's own, which may pass quickly."""
    eventually(seen, 20, 0.002)


@pytest.fixture(scope="session")
def tls_simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """One TLS simulator for the whole session; proxmoxer speaks nothing but HTTPS."""
    directory = tmp_path_factory.mktemp("simulator")
    options = Options(
        directory,
        clusters=2,
        speed=200,
        tls=True,
        node_endpoints=True,
        optional_privileges=True,
    )
    with Simulator(options) as simulator:
        yield simulator


@pytest.fixture
def lab(tls_simulator: Simulator) -> Lab:
    """An empty simulator and the agent's client."""
    tls_simulator.clear_faults()
    tls_simulator.reset()
    tls_simulator.engine.set_speed(200)
    for cluster in tls_simulator.clusters:
        _grant_pools(cluster, tls_simulator.token)
    return Lab(tls_simulator, connect(tls_simulator))


def _grant_pools(cluster: Cluster, token: dict[str, str]) -> None:
    """What no agent needs, and these clients do."""
    with cluster.turn():
        for kind, who in (("user", token["user"]), ("token", token["tokenid"])):
            cluster.access.grants.append(Grant("/pool", who, kind, "PVEPoolAdmin"))
        cluster.access.changed()


@pytest.fixture
def make_simulator(tmp_path: Path) -> Iterator[Callable[..., Simulator]]:
    """Start simulators that are stopped at the end."""
    made: list[Simulator] = []

    def make(**options: Any) -> Simulator:
        given = {"state_dir": tmp_path / "state", "speed": 200.0, "tls": True, **options}
        simulator = Simulator(Options(**{"optional_privileges": True, **given}))
        simulator.start()
        for cluster in simulator.clusters:
            _grant_pools(cluster, simulator.token)
        made.append(simulator)
        return simulator

    yield make
    for simulator in made:
        simulator.stop()

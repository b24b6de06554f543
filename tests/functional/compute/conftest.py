"""A worker against the real simulator: fakes only where other services would be."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from proxmoxer import ProxmoxAPI

from common import clock, config, ids, rpc, wire
from common.context import internal
from common.messages.commands import (
    Build,
    Command,
    ConfigDrive,
    Destroy,
    Image,
    Nic,
    Placed,
    Power,
    PowerAction,
    Template,
)
from common.messages.facts import Heartbeat
from common.messages.reports import Outcome, Report
from common.messages.topics import CONDUCTOR_TOPIC
from compute import config as compute_config
from compute import drivers
from compute.client import ComputeClient
from compute.hypervisor.port import Hypervisor
from compute.service import ComputeService
from tests.functional.simulator_fixture import RunningSimulator, running_simulator

WAIT_SECONDS = 30
IMAGE = "cirros"
_numbers = itertools.count(1)
#: VMIDs of the tests' templates; the last one is the present test's
_template = [190_000]


@pytest.fixture(scope="session")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    with running_simulator(tmp_path_factory.mktemp("simulator") / "state") as running:
        yield running


def as_root(simulator: RunningSimulator) -> Any:
    """What an administrator does beside the agents."""
    host, _, port = simulator.url.removeprefix("https://").rpartition(":")
    password = (simulator.state_dir / "root-password").read_text().strip()
    return ProxmoxAPI(
        host, port=int(port), user="root@pam", password=password, verify_ssl=str(simulator.ca_file)
    )


class FakeConductor:
    """Listens where the conductor would; keeps what it hears."""

    def __init__(self, transport: Any) -> None:
        self.changed = threading.Condition()
        self.reports: list[Report] = []
        self.heartbeats: list[Heartbeat] = []
        self.server = rpc.Server(transport, CONDUCTOR_TOPIC, "conductor", [self], workers=2)

    def report(self, ctxt: Any, reports: list[Mapping[str, Any]]) -> None:
        with self.changed:
            self.reports += [wire.load(Report, one) for one in reports]
            self.changed.notify_all()

    def heartbeat(self, ctxt: Any, heartbeat: Mapping[str, Any]) -> None:
        with self.changed:
            self.heartbeats.append(wire.load(Heartbeat, heartbeat))
            self.changed.notify_all()

    def sightings(self, ctxt: Any, **told: Any) -> None:
        """What was seen of VMs: heard, and of no use here."""

    def wait_for(self, found: Any) -> Any:
        with self.changed:
            assert self.changed.wait_for(found, timeout=WAIT_SECONDS), "nothing came in time"
            return found()

    def outcomes(self, command: Command) -> list[Outcome]:
        return [
            one.outcome
            for one in self.reports
            if one.outcome is not None
            and one.operation_id == command.operation_id
            and one.attempt == command.attempt
        ]

    def steps(self, command: Command) -> dict[str, Any]:
        """The last word on each step, by name."""
        found = {}
        for report in self.reports:
            if report.operation_id == command.operation_id:
                for step in report.steps:
                    before = found.get(step.name)
                    if before is None or before.result is None or step.result is not None:
                        found[step.name] = step
        return dict(sorted(found.items(), key=lambda item: item[1].sequence))


class FakePlacement:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.inventories: dict[str, Any] = {}
        self.kept: dict[str, frozenset[str]] = {}
        self.classes: list[str] = []

    def ensure_provider(self, uuid: str, name: str) -> None:
        self.names[uuid] = name
        self.kept.setdefault(uuid, frozenset({"COMPUTE_STATUS_DISABLED"}))

    def ensure_resource_class(self, name: str) -> None:
        self.classes.append(name)

    def set_inventory(self, uuid: str, inventories: Any) -> None:
        self.inventories[uuid] = inventories

    def traits(self, uuid: str) -> frozenset[str]:
        return self.kept[uuid]

    def set_traits(self, uuid: str, traits: Any) -> None:
        self.kept[uuid] = frozenset(traits)


class Worker:
    """A running ComputeService and those it talks to."""

    def __init__(
        self, conf: cfg.ConfigOpts, hypervisors: Sequence[Hypervisor] | None = None
    ) -> None:
        self.conf = conf
        self.transport = rpc.transport(conf)
        self.hypervisors = list(hypervisors or drivers.hypervisors(conf))
        self.placement = FakePlacement()
        self.conductor = FakeConductor(self.transport)
        self.service = ComputeService(conf, self.transport, self.hypervisors, self.placement)
        self.client = ComputeClient(self.transport)

    def start(self) -> None:
        self.conductor.server.start()
        self.service.start()
        self.conductor.wait_for(lambda: any(beat.facts for beat in self.conductor.heartbeats))

    def stop(self) -> None:
        self.service.stop()
        self.conductor.server.stop()

    def send(self, command: Command) -> None:
        send = {Build: self.client.build, Destroy: self.client.destroy, Power: self.client.power}
        send[type(command)](internal(), self.service.worker, command)  # type: ignore[operator]

    def run(self, command: Command) -> Outcome:
        """Send a command and wait for one more outcome of it."""
        before = len(self.conductor.outcomes(command))
        self.send(command)
        outcomes = self.conductor.wait_for(
            lambda: self.conductor.outcomes(command)[before:] or None
        )
        return outcomes[0]


def configuration(tmp_path: Path, text: str) -> cfg.ConfigOpts:
    path = tmp_path / "micronova.conf"
    path.write_text(text)
    return config.load([rpc.register, compute_config.register], files=[str(path)])


def proxmox_text(simulator: RunningSimulator, **more: str) -> str:
    values = {
        "endpoints": simulator.url,
        "token_file": str(simulator.token_file),
        "ca_file": str(simulator.ca_file),
        "vm_storage": "local",
        "iso_storage": "local",
        **more,
    }
    lines = "\n".join(f"{name} = {value}" for name, value in values.items())
    return f"""
[DEFAULT]
transport_url = micronova-local://{uuid.uuid4().hex}
[compute]
worker = worker1
observe_seconds = 1
content_seconds = 1
heartbeat_seconds = 1
shutdown_seconds = 1
[proxmox]
clusters = c1
[proxmox:c1]
{lines}
"""


@pytest.fixture(scope="session")
def long_lived(
    simulator: RunningSimulator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("worker")
    running = Worker(configuration(folder, proxmox_text(simulator)))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def worker(simulator: RunningSimulator, long_lived: Worker) -> Worker:
    """A worker on a cluster that was emptied behind its back."""
    simulator.control("POST", "reset")
    # Its images are others by their times; listed late, they would be taken for changed ones.
    long_lived.hypervisors[0]._surveyor._images.clear()  # type: ignore[attr-defined]
    long_lived.hypervisors[0].observe()
    _template.append(_template[-1] + 1)
    return long_lived


def template_vmid() -> int:
    """Where this test's builds have their template."""
    return _template[-1]


def a_build(vmid: int | None = None, **more: Any) -> Build:
    """A build on pve1; ids are new each time."""
    number = next(_numbers)
    server = ids.new_uuid()
    values: dict[str, Any] = {
        "name": f"web{number}",
        "hostname": f"web{number}",
        "project_id": "p1",
        "user_id": "u1",
        "vcpus": 2,
        "memory_mib": 512,
        "disk_gib": 2,
        "image": Image(ids.named("image", IMAGE), IMAGE, f"shared:import/{IMAGE}.qcow2", 1 << 24),
        "template": Template(template_vmid(), "pve1", "local"),
        "nics": (
            Nic(ids.new_uuid(), ids.new_uuid(), "net", "vmbr0", "fa:16:3e:00:00:01", 1450, 7),
        ),
        "config_drive": ConfigDrive({"uuid": server, "hostname": "web"}, {"links": []}, {}),
    }
    placed = Placed("pve1", "c1", "pve1", vmid or 100_000 + number)
    deadline = more.pop("deadline", clock.after(60))
    return Build(number, 1, server, placed, deadline, **(values | more))


def a_destroy(build: Build) -> Destroy:
    return Destroy(next(_numbers), 1, build.server_uuid, build.placed, clock.after(60))


def a_power(build: Build, action: PowerAction) -> Power:
    return Power(
        next(_numbers), 1, build.server_uuid, build.placed, clock.after(60), action=action
    )


class Cluster:
    """What is in the simulated cluster now."""

    def __init__(self, simulator: RunningSimulator) -> None:
        self._simulator = simulator

    @property
    def _now(self) -> Any:
        return self._simulator.state()["clusters"][0]

    def vm(self, vmid: int) -> Any:
        return next((vm for vm in self._now["vms"] if vm["vmid"] == vmid), None)

    def volumes(self, vmid: int) -> list[str]:
        """Volumes that bear the VMID, config drives included."""
        return [
            one["volid"]
            for one in self._now["volumes"]
            if one["vmid"] == vmid or f"-{vmid}-" in one["name"]
        ]

    def is_empty(self, vmid: int) -> bool:
        return self.vm(vmid) is None and not self.volumes(vmid)

    def calls(self, method: str, suffix: str) -> list[Any]:
        return [
            call
            for call in self._simulator.control("GET", "calls")
            if call["method"] == method and call["path"].endswith(suffix)
        ]


@pytest.fixture
def cluster(simulator: RunningSimulator, worker: Worker) -> Cluster:
    return Cluster(simulator)

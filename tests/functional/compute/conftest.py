"""A worker against the real simulator: fakes only where other services would be."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from prometheus_client import REGISTRY
from proxmoxer import ProxmoxAPI

from common import clock, config, ids, rpc
from common.context import RequestContext, internal
from common.messages.commands import (
    Build,
    Command,
    ConfigDrive,
    Copy,
    Destroy,
    EndSwap,
    Grow,
    Image,
    MakeVolume,
    Move,
    Nic,
    Placed,
    Plug,
    PlugVolume,
    Power,
    PowerAction,
    RemoveVolume,
    ServerVolume,
    Shape,
    Size,
    Swap,
    Template,
    VolumeUser,
)
from common.metrics.table import PROXMOX_CALLS
from common.resources.states import ResourceType
from compute import config as compute_config
from compute import drivers
from compute.client import ComputeClient
from compute.hypervisor.port import Hypervisor
from compute.hypervisor.proxmox.api import calls, privileges
from compute.prepare.wanted import OPTIONAL
from compute.worker.service import ComputeService, Rounds
from tests import sampling
from tests.fixtures.root_shell import RootShell
from tests.fixtures.storages import NO_SNAPSHOTS, STORAGES
from tests.functional.compute.neighbours import FakeConductor, FakePlacement
from tests.functional.compute.reckoning import Reckoning
from tests.functional.simulator_fixture import RunningSimulator, running_simulator
from tests.functional.waiting import eventually
from tests.shared import Shared

SETTLE_SECONDS = 20
#: of the simulator's time
SPEED = 50.0
IMAGE = "cirros"
CLOUD = "0f0f0f0f-0000-4000-8000-000000000001"
_numbers = itertools.count(1)
#: VMIDs of the tests' templates; the last one is the present test's
_template = [190_000]
#: the operations of swaps
_swapped = [0]
#: the storage of the present test's disks
_disks = ["local"]
#: files whose tests are tried with disks on a storage of each type: on one with every change
ON_EACH_STORAGE = frozenset(
    {
        "test_boot_volumes.py",
        "test_copy.py",
        "test_kept_by_snapshots.py",
        "test_local_disks.py",
        "test_swap.py",
        "test_volumes.py",
        "test_with_volumes.py",
    }
)


_SIMULATOR: Shared[RunningSimulator] = Shared("simulator")
_WORKER: Shared[Worker] = Shared("long_lived")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> RunningSimulator:
    folder = tmp_path_factory.mktemp("simulator") / "state"
    return _SIMULATOR.get(lambda: running_simulator(folder, speed=SPEED))


@pytest.fixture
def shell(simulator: RunningSimulator, tmp_path: Path) -> RootShell:
    """Runs the commands that an operator is given for a node."""
    password = simulator.state_dir / "root-password"
    return RootShell(simulator.url, simulator.ca_file, password, tmp_path / "bin")


@pytest.fixture
def root(shell: RootShell) -> RootShell:
    """See ``shell``."""
    return shell


def granted(simulator: RunningSimulator, *purposes: str) -> None:
    """The agent gets what is optional, as its operator may give it."""
    api = as_root(simulator)
    for role in privileges.roles(
        need for one in purposes for need in privileges.of(OPTIONAL[one], "9.2")
    ):
        name = f"{role.name}Too"
        api.access.roles.post(roleid=name, privs=",".join(role.privileges))
        who = {"users": "micronova@pve", "tokens": "micronova@pve!agent", "roles": name}
        for path in role.paths:
            api.access.acl.put(path=path, propagate=int(role.inherited), **who)


def as_root(simulator: RunningSimulator) -> Any:
    """What an administrator does beside the agents."""
    host, _, port = simulator.url.removeprefix("https://").rpartition(":")
    password = (simulator.state_dir / "root-password").read_text().strip()
    return ProxmoxAPI(
        host, port=int(port), user="root@pam", password=password, verify_ssl=str(simulator.ca_file)
    )


_reckoning = Reckoning()


@pytest.fixture(autouse=True)
def reckoning(request: pytest.FixtureRequest) -> Iterator[Reckoning]:
    """Every test with a simulator ends with a comparison of its state with the reports."""
    _reckoning.begin([one for one in _reckoning.workers if one.lasts])
    yield _reckoning
    if "simulator" not in request.fixturenames:
        return
    assert sent() - _TESTS_OWN <= calls.named(), "a call is in no list: see api/calls.py"
    simulator: RunningSimulator = request.getfixturevalue("simulator")
    simulator.control("DELETE", "faults")
    found: list[str] = []

    def settled() -> bool:
        found[:] = _reckoning.differences(simulator.state()["clusters"][0])
        return not found

    try:
        eventually(settled, SETTLE_SECONDS)
    except AssertionError:
        raise AssertionError("; ".join(found)) from None


#: calls that tests send with the driver's client
_TESTS_OWN = frozenset({"GET nodes/{node}/version", "GET nodes/{node}/qemu"})


def sent() -> set[str]:
    """All calls that this process has sent, as method and template."""
    families = [one for one in REGISTRY.collect() if PROXMOX_CALLS.name.startswith(one.name)]
    labels = [one.labels for family in families for one in family.samples]
    return {f"{one['method'].upper()} {one['call']}" for one in labels}


class Worker:
    """A running ComputeService and those it talks to."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        hypervisors: Sequence[Hypervisor] | None = None,
        rounds: Rounds | None = None,
    ) -> None:
        self.conf = conf
        self.transport = rpc.transport(conf)
        self.hypervisors = list(hypervisors or drivers.hypervisors(conf))
        self.placement = FakePlacement()
        self.conductor = FakeConductor(self.transport)
        self.service = ComputeService(
            conf, self.transport, self.hypervisors, self.placement, rounds
        )
        self.client = ComputeClient(self.transport)
        self.sent: list[Command] = []
        self.lasts = False
        """Whether it is there for more than one test."""

    def start(self) -> None:
        _reckoning.workers.append(self)
        self.conductor.server.start()
        self.service.start()
        self.conductor.wait_for(lambda: any(beat.facts for beat in self.conductor.heartbeats))

    def stop(self) -> None:
        self.service.stop()
        self.conductor.server.stop()

    def send(self, command: Command, ctxt: RequestContext | None = None) -> None:
        self.sent.append(command)
        self.client.execute(ctxt or internal(), self.service.address, command)

    def look(self, command: Command) -> Any:
        """As ``run``, of an operation whose deadline passed unseen: nothing may be changed."""
        ctxt = internal()
        ctxt.only_look = True
        return self.run(dataclasses.replace(command, attempt=command.attempt + 1), ctxt)

    def run(self, command: Command, ctxt: RequestContext | None = None) -> Any:
        """Send a command and wait for one more outcome of it."""
        before = len(self.conductor.outcomes(command))
        self.send(command, ctxt)
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
        "linked_clones": "always",
        "restart_lock_seconds": str(30 / SPEED),
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
# Its reader would add calls to those that are counted and made to fail.
console_log_kib = 0
[proxmox]
clusters = c1
[proxmox:c1]
{lines}
"""


@contextlib.contextmanager
def running_worker(folder: Path, simulator: RunningSimulator) -> Iterator[Worker]:
    """A worker for more than one test."""
    running = Worker(configuration(folder, proxmox_text(simulator)))
    running.lasts = True
    running.start()
    try:
        yield running
    finally:
        running.lasts = False
        running.stop()


@pytest.fixture(scope="module")
def long_lived(simulator: RunningSimulator, tmp_path_factory: pytest.TempPathFactory) -> Worker:
    folder = tmp_path_factory.mktemp("worker")
    return _WORKER.get(lambda: running_worker(folder, simulator), simulator.url)


#: of these the tests that are about other storages
ON_ONE_STORAGE = frozenset(
    {
        "test_a_server_moves_with_a_shared_one",
        "test_one_that_is_extended_while_its_server_moves_grows_where_that_is_then",
        "test_a_server_with_a_local_one_stays_untouched",
        "test_the_null_driver_keeps_them",
        "test_one_on_shared_storage_moves_and_one_on_local_storage_stays",
    }
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have a test of ``ON_EACH_STORAGE`` run for each type."""
    if metafunc.definition.path.name not in ON_EACH_STORAGE:
        return
    if "worker" not in metafunc.fixturenames or "kind" in metafunc.fixturenames:
        return
    if metafunc.definition.name in ON_ONE_STORAGE:
        return
    snapped = metafunc.definition.path.name == "test_kept_by_snapshots.py"
    kinds = ["dir", *(one for one in STORAGES if not snapped or one not in NO_SNAPSHOTS)]
    metafunc.fixturenames.append("disk_kind")
    metafunc.parametrize("disk_kind", kinds, indirect=True)
    mark = metafunc.definition.get_closest_marker(sampling.MARK)
    among = len(kinds) * (mark.args[0] if mark is not None else 1)
    metafunc.definition.add_marker(pytest.mark.sampled(among), append=False)


@pytest.fixture
def disk_kind(request: pytest.FixtureRequest) -> str:
    """The type of the storage of the test's disks; ``dir``: the nodes' own."""
    return str(getattr(request, "param", "dir"))


def disk_storage() -> str:
    """The storage of the present test's disks."""
    return _disks[-1]


@pytest.fixture
def worker(simulator: RunningSimulator, long_lived: Worker, disk_kind: str) -> Iterator[Worker]:
    """A worker on a cluster that was emptied behind its back."""
    simulator.control("POST", "reset")
    _disks[-1] = "local" if disk_kind == "dir" else f"of-{disk_kind}"
    if disk_kind != "dir":
        STORAGES[disk_kind].add(simulator.control, disk_storage())
    # Its images are others by their times; listed late, they would be taken for changed ones.
    long_lived.hypervisors[0]._refresher._images.clear()  # type: ignore[attr-defined]
    long_lived.hypervisors[0].observe()
    _template.append(_template[-1] + 1)
    yield long_lived
    # Tests that have a worker of their own have the nodes' storage.
    _disks[-1] = "local"


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
        "template": Template(template_vmid(), "pve1", disk_storage()),
        "storage": None if disk_storage() == "local" else disk_storage(),
        "nics": (
            Nic(ids.new_uuid(), ids.new_uuid(), "net", "vmbr0", "fa:16:3e:00:00:01", 1450, 7),
        ),
        "config_drive": ConfigDrive({"uuid": server, "hostname": "web"}, {"links": []}, {}),
    }
    placed = Placed("pve1", "c1", "pve1", vmid or 100_000 + number)
    deadline = more.pop("deadline", clock.after(60))
    more.setdefault("cloud", CLOUD)
    return Build(number, 1, ResourceType.SERVER, server, placed, deadline, **(values | more))


def _of(build: Build) -> tuple[Any, ...]:
    """What every command on a built VM begins with."""
    return next(_numbers), 1, ResourceType.SERVER, build.resource_id, build.placed, clock.after(60)


def a_destroy(build: Build) -> Destroy:
    return Destroy(*_of(build), cloud=build.cloud)


def a_power(build: Build, action: PowerAction) -> Power:
    return Power(*_of(build), cloud=build.cloud, action=action)


def a_move(build: Build, target: str, *, source: str = "pve1", **changes: Any) -> Move:
    """A move of a built VM, live unless the changes say otherwise."""
    placed = Placed(source, "c1", source, build.placed.vmid)
    values: dict[str, Any] = {
        "target_node": target,
        "live": True,
        "config_drive": build.config_drive,
        "deadline": clock.after(60),
        "cloud": build.cloud,
    } | changes
    return Move(next(_numbers), 1, ResourceType.SERVER, build.resource_id, placed, **values)


def a_shape(build: Build, size: Size, *, running: bool = True, **changes: Any) -> Shape:
    """Another size for a built VM."""
    former = Size(build.vcpus, build.memory_mib, build.extra_specs)
    values: dict[str, Any] = {"size": size, "former": former, "running": running}
    return Shape(*_of(build), cloud=build.cloud, **(values | changes))


def a_growth(build: Build, disk_gib: int) -> Grow:
    return Grow(*_of(build), cloud=build.cloud, disk_gib=disk_gib)


def a_plug(build: Build, nic: Nic, **changes: Any) -> Plug:
    """An interface for a built VM."""
    size = Size(build.vcpus, build.memory_mib, build.extra_specs)
    values: dict[str, Any] = {"nic": nic, "size": size, "slot": len(build.nics)}
    return Plug(*_of(build), cloud=build.cloud, **(values | changes))


def a_volume(vmid: int | None = None, **more: Any) -> MakeVolume:
    """An empty volume of 2 GiB on pve1; ids are new each time."""
    number = next(_numbers)
    placed = Placed("pve1", "c1", "pve1", vmid or 150_000 + number)
    values: dict[str, Any] = {
        "name": "data",
        "size_gib": 2,
        "storage": disk_storage(),
        "cloud": CLOUD,
    }
    return MakeVolume(
        number, 1, ResourceType.VOLUME, ids.new_uuid(), placed, clock.after(60), **(values | more)
    )


def a_removal(volume: MakeVolume, volid: str | None, *users: Build) -> RemoveVolume:
    """The removal of a volume that these servers had."""
    had = tuple(VolumeUser(one.resource_id, one.placed.node, one.placed.vmid) for one in users)
    return RemoveVolume(
        next(_numbers),
        1,
        ResourceType.VOLUME,
        volume.resource_id,
        volume.placed,
        clock.after(60),
        volid=volid,
        users=had,
        cloud=CLOUD,
    )


def an_attachment(build: Build, volume: MakeVolume, volid: str, **more: Any) -> PlugVolume:
    """A volume for a built VM."""
    values: dict[str, Any] = {
        "volume_id": volume.resource_id,
        "volid": volid,
        "holder": volume.placed,
        "cloud": CLOUD,
        "serial": volume.resource_id[:20],
        "slot": 1,
    }
    return PlugVolume(
        next(_numbers),
        1,
        ResourceType.SERVER,
        build.resource_id,
        build.placed,
        clock.after(60),
        **(values | more),
    )


def a_server_volume(volume: MakeVolume, volid: str, slot: int = 0) -> ServerVolume:
    """A made volume as a build names it."""
    serial = volume.resource_id[:20]
    return ServerVolume(volume.resource_id, volid, volume.placed, slot, serial)


def a_build_on(*volumes: ServerVolume, **more: Any) -> Build:
    """A build of a server that boots from a volume."""
    values: dict[str, Any] = {"image": None, "template": None, "disk_gib": 0, "cloud": CLOUD}
    return a_build(volumes=volumes, **(values | more))


def a_swap(build: Build, *, running: bool = True, **changes: Any) -> Swap:
    """A rebuild of a built VM; ``an_end`` is of the last one."""
    drive = ConfigDrive({"uuid": build.resource_id, "hostname": "new"}, {"links": []}, {})
    values: dict[str, Any] = {
        **{one.name: getattr(build, one.name) for one in dataclasses.fields(build) if one.init},
        "operation_id": next(_numbers),
        "hostname": "new",
        "template": None,
        "config_drive": drive,
        "running": running,
        "deadline": clock.after(60),
    }
    _swapped.append(values["operation_id"])
    return Swap(**(values | changes))


def an_end(build: Build, *, keep: bool, running: bool = True, rescued: bool = False) -> EndSwap:
    """The end of a rebuild or a rescue."""
    number, placed, late = _swapped[-1], build.placed, clock.after(60)
    if rescued:
        number = next(_numbers)
    return EndSwap(
        number,
        1,
        ResourceType.SERVER,
        build.resource_id,
        placed,
        late,
        cloud=build.cloud,
        keep=keep,
        running=running,
        rescued=rescued,
    )


def a_copy(build: Build, vmid: int, **changes: Any) -> Copy:
    """An image of a built VM's disk."""
    values: dict[str, Any] = {
        "source_vmid": build.placed.vmid,
        "storage": disk_storage(),
        "image_id": ids.named("copy", str(vmid)),
        "image_name": "copy",
        "cloud": build.cloud,
    }
    placed = dataclasses.replace(build.placed, vmid=vmid)
    return Copy(
        next(_numbers),
        1,
        ResourceType.SERVER,
        build.resource_id,
        placed,
        clock.after(60),
        **(values | changes),
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
def second(simulator: RunningSimulator, worker: Worker, tmp_path: Path) -> Iterator[Worker]:
    """Another process with agents of the same cluster, which remembers nothing of the first."""
    running = Worker(configuration(tmp_path, proxmox_text(simulator)))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def cluster(simulator: RunningSimulator, worker: Worker) -> Cluster:
    return Cluster(simulator)

"""The ownership fence at every call that changes something: who else's VM is there stays as it is.

The calls are recorded from real operations, so that a new one can't be forgotten. Before each, in
turn, the VM is replaced by a stranger's with the same VMID, name and tags.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import proxmoxer
import pytest
from oslo_config import cfg

from common.messages.commands import Command, PowerAction
from compute.hypervisor.proxmox import settings as proxmox_settings
from compute.hypervisor.proxmox.client import Client
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    configuration,
    proxmox_text,
)
from tests.functional.compute.reckoning import Reckoning
from tests.functional.simulator_fixture import RunningSimulator

Operation = Callable[[Any], Command]

#: operation → its calls that change something, in order
CALLS = {
    "build": [
        "POST /nodes/N/storage/S/upload",
        "POST /nodes/N/qemu/T/clone",
        "POST /nodes/N/qemu/V/config",
        "PUT /nodes/N/qemu/V/resize",
        "POST /nodes/N/qemu/V/status/start",
    ],
    "template": [
        "POST /nodes/N/qemu",
        "POST /nodes/N/qemu/T/template",
        "POST /nodes/N/storage/S/upload",
        "POST /nodes/N/qemu/T/clone",
        "POST /nodes/N/qemu/V/config",
        "PUT /nodes/N/qemu/V/resize",
        "POST /nodes/N/qemu/V/status/start",
    ],
    "import": [
        "POST /nodes/N/storage/S/upload",
        "POST /nodes/N/qemu",
        "PUT /nodes/N/qemu/V/resize",
        "POST /nodes/N/qemu/V/status/start",
    ],
    "stop": ["POST /nodes/N/qemu/V/status/shutdown"],
    "start": ["POST /nodes/N/qemu/V/status/start"],
    "reboot": ["POST /nodes/N/qemu/V/status/reboot"],
    "hard reboot": ["POST /nodes/N/qemu/V/status/stop", "POST /nodes/N/qemu/V/status/start"],
    "destroy": [
        "POST /nodes/N/qemu/V/status/stop",
        "DELETE /nodes/N/qemu/V",
        "DELETE /nodes/N/storage/S/content/iso",
    ],
}
#: those that Proxmox VE itself refuses once the VM is another one than was looked at
BOUND = {"POST /nodes/N/qemu/V/config", "PUT /nodes/N/qemu/V/resize"}
ON_THE_VM = [
    (operation, position)
    for operation, calls in CALLS.items()
    if operation != "template"  # the rest of it is a build
    for position, call in enumerate(calls)
    if "/qemu/V" in call
]


class Watched(Client):
    """Tells of every request before it is sent."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(proxmox_settings.clusters(conf)[0])
        self.writes: list[str] = []
        self.before: Callable[[str, str], None] | None = None
        self.also: dict[str, dict[str, Any]] = {}
        """What root wrote into configurations by hand, by path."""
        self._one = threading.RLock()

    def _request(self, method: str, path: str, values: dict[str, Any]) -> Any:
        with self._one:
            if self.before is not None:
                self.before(method, path)
            if method != "get":
                self.writes.append(f"{method.upper()} /{path}")
        answer = super()._request(method, path, values)
        return {**answer, **self.also[path]} if path in self.also else answer


class Stage:
    """A worker whose requests are watched, and an administrator beside it."""

    def __init__(self, simulator: RunningSimulator, folder: Path) -> None:
        simulator.control("POST", "reset")
        conf = configuration(folder, proxmox_text(simulator))
        self.client = Watched(conf)
        settings = self.client.settings
        hypervisor = ProxmoxHypervisor(conf, settings, self.client)
        self.worker = Worker(conf, [hypervisor])
        self.worker.start()
        host, port = settings.endpoints[0]
        self.api = proxmoxer.ProxmoxAPI(
            host,
            port=port,
            user=settings.token.user,
            token_name=settings.token.name,
            token_value=settings.token.secret,
            verify_ssl=str(simulator.ca_file),
        )
        self.cluster = Cluster(simulator)
        self.taken: list[int] = []

    def ready(self, operation: str) -> tuple[Any, Command]:
        """The server's build and the command to watch; all that comes before it is done."""
        build = a_build() if operation == "build" else a_build(template=None)
        if operation == "build":
            assert self.worker.run(a_build()).ok, "the template is there from here on"
        if operation in ("build", "import"):
            return build, build
        if operation == "template":
            build = a_build()
            return build, build
        assert self.worker.run(build).ok
        if operation == "start":
            assert self.worker.run(a_power(build, PowerAction.STOP)).ok
        commands: dict[str, Operation] = {
            "stop": lambda one: a_power(one, PowerAction.STOP),
            "start": lambda one: a_power(one, PowerAction.START),
            "reboot": lambda one: a_power(one, PowerAction.REBOOT_SOFT),
            "hard reboot": lambda one: a_power(one, PowerAction.REBOOT_HARD),
            "destroy": a_destroy,
        }
        return build, commands[operation](build)

    def take_over(self, vmid: int) -> Any:
        """Somebody else has that VMID from now on, with the name and the tags of ours."""
        self.taken.append(vmid)
        self.api.nodes("pve1").qemu(vmid).config.put(description="mine")
        return self.cluster.vm(vmid)


@pytest.fixture
def stage(simulator: RunningSimulator, tmp_path: Path, reckoning: Reckoning) -> Iterator[Stage]:
    made = Stage(simulator, tmp_path)
    yield made
    # What was built, and is somebody else's since.
    reckoning.lost += made.taken
    made.client.before = None
    made.worker.stop()


def plain(call: str, vmid: int) -> str:
    """A call without what differs from run to run."""
    for pattern, name in (
        (rf"/qemu/{vmid}\b", "/qemu/V"),
        (r"/qemu/\d+", "/qemu/T"),
        (r"/nodes/[^/]+", "/nodes/N"),
        (r"/storage/[^/]+", "/storage/S"),
        (r"/content/[^/]*:iso/.*", "/content/iso"),
    ):
        call = re.sub(pattern, name, call)
    return call


@pytest.mark.parametrize("operation", CALLS)
def test_these_are_all_calls_that_change_something(stage: Stage, operation: str) -> None:
    build, command = stage.ready(operation)
    stage.client.writes.clear()
    assert stage.worker.run(command).ok
    seen = [plain(call, build.placed.vmid) for call in stage.client.writes]
    assert seen == CALLS[operation]


@pytest.mark.parametrize(("operation", "position"), ON_THE_VM)
def test_a_stranger_in_the_place_of_our_vm_is_left_alone(
    stage: Stage, operation: str, position: int
) -> None:
    """It came after the call before: whoever looks now sees it."""
    build, command = stage.ready(operation)
    vmid = build.placed.vmid
    stage.client.writes.clear()
    seen: list[Any] = []

    def before(method: str, path: str) -> None:
        if not seen and len(stage.client.writes) == position:
            vm = stage.cluster.vm(vmid)
            if vm is not None and not vm["lock"]:
                seen.append(stage.take_over(vmid))

    stage.client.before = before
    outcome = stage.worker.run(command)
    stage.client.before = None
    require_untouched(stage, outcome, seen, vmid, position)


@pytest.mark.parametrize(
    ("operation", "position"),
    [(name, at) for name, at in ON_THE_VM if CALLS[name][at] in BOUND],
)
def test_a_stranger_that_comes_between_look_and_call_is_left_alone(
    stage: Stage, operation: str, position: int
) -> None:
    build, command = stage.ready(operation)
    vmid = build.placed.vmid
    stage.client.writes.clear()
    seen: list[Any] = []

    def before(method: str, path: str) -> None:
        if not seen and method != "get" and len(stage.client.writes) == position:
            seen.append(stage.take_over(vmid))

    stage.client.before = before
    outcome = stage.worker.run(command)
    stage.client.before = None
    require_untouched(stage, outcome, seen, vmid, position + 1)


def require_untouched(stage: Stage, outcome: Any, seen: list[Any], vmid: int, calls: int) -> None:
    assert seen, "nobody took over"
    assert not outcome.ok
    assert outcome.failure is not None
    after = stage.cluster.vm(vmid)
    assert after is not None
    for name in ("config", "pending", "node", "status", "pid"):
        assert after[name] == seen[0][name], name
    on_vm = [call for call in stage.client.writes[calls:] if f"/qemu/{vmid}" in call]
    bound = [plain(call, vmid) for call in on_vm if plain(call, vmid) in BOUND]
    assert len(on_vm) == len(bound), "a call went out that nothing binds to what was seen"


def test_a_stranger_in_the_place_of_a_template_to_be_is_left_alone(stage: Stage) -> None:
    build, command = stage.ready("template")
    vmid = build.template.vmid
    stage.client.writes.clear()
    seen: list[Any] = []

    def before(method: str, path: str) -> None:
        if not seen and len(stage.client.writes) == 1:
            vm = stage.cluster.vm(vmid)
            if vm is not None and not vm["lock"]:
                seen.append(stage.take_over(vmid))

    stage.client.before = before
    outcome = stage.worker.run(command)
    stage.client.before = None
    require_untouched(stage, outcome, seen, vmid, 1)
    assert stage.cluster.is_empty(build.placed.vmid)

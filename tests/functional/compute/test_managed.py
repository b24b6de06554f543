"""Servers that are resources of high availability: it starts and stops them, and is asked to.

A start or a stop of one is a request: its task ends well at once, and the manager follows later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from common import clock, ids
from common.context import internal
from common.messages.commands import Mark, Placed, PowerAction
from common.resources.states import ResourceType
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    as_root,
)
from tests.functional.compute.reckoning import Reckoning
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

THEIRS = 903


@pytest.fixture
def root(simulator: RunningSimulator, worker: Worker, reckoning: Reckoning) -> Iterator[Any]:
    """An administrator, with a managed VM of their own that nobody may touch."""
    api = as_root(simulator)
    api.nodes("pve1").qemu.post(vmid=THEIRS, memory=64, name="theirs")
    current = api.nodes("pve1").qemu(THEIRS).status.current
    eventually(lambda: "lock" not in api.nodes("pve1").qemu(THEIRS).config.get(), 20)
    api.nodes("pve1").qemu(THEIRS).status.start.post()
    eventually(lambda: current.get()["status"] == "running", 20)
    api.cluster.ha.resources.post(sid=f"vm:{THEIRS}", state="started")
    before = Cluster(simulator).vm(THEIRS)
    yield api
    after = Cluster(simulator).vm(THEIRS)
    assert {name: after[name] for name in ("config", "status", "pid", "node")} == {
        name: before[name] for name in ("config", "status", "pid", "node")
    }
    assert api.cluster.ha.resources(f"vm:{THEIRS}").get()["state"] == "started"


def managed(root: Any) -> dict[str, str]:
    """State by resource, without theirs."""
    found = {one["sid"]: one.get("state", "") for one in root.cluster.ha.resources.get()}
    del found[f"vm:{THEIRS}"]
    return found


@pytest.fixture
def build(worker: Worker, root: Any) -> Any:
    """A server that runs and was put into high availability's hands."""
    made = a_build(template=None)
    assert worker.run(made).ok
    root.cluster.ha.resources.post(sid=f"vm:{made.placed.vmid}", state="started")
    return made


def test_it_is_stopped_started_and_restarted(
    worker: Worker, cluster: Cluster, root: Any, build: Any
) -> None:
    vmid = build.placed.vmid
    for action, status in (
        (PowerAction.STOP, "stopped"),
        (PowerAction.START, "running"),
        (PowerAction.REBOOT_SOFT, "running"),
        (PowerAction.REBOOT_HARD, "running"),
    ):
        outcome = worker.run(a_power(build, action))
        assert outcome.ok, outcome
        assert cluster.vm(vmid)["status"] == status
        # What the manager wants is what the server's owner wanted: it brings nothing back.
        state = "started" if status == "running" else "stopped"
        assert managed(root) == {f"vm:{vmid}": state}
    assert worker.run(a_destroy(build)).gone


def test_it_is_deleted_with_its_resource(
    worker: Worker, cluster: Cluster, root: Any, build: Any
) -> None:
    outcome = worker.run(a_destroy(build))
    assert outcome.gone, outcome
    assert cluster.is_empty(build.placed.vmid)
    assert managed(root) == {}
    deletes = cluster.calls("DELETE", f"/qemu/{build.placed.vmid}")
    assert [one["status"] for one in deletes] == [200], "not before it was off"


def test_what_the_manager_cannot_start_is_reported_and_works_after_the_remedy(
    worker: Worker, cluster: Cluster, root: Any, build: Any, shell: RootShell
) -> None:
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    config = root.nodes("pve1").qemu(build.placed.vmid).config
    config.put(net0="virtio,bridge=vmbr9")
    outcome = worker.run(a_power(build, PowerAction.START))
    assert not outcome.ok
    assert outcome.failure is not None
    assert "High availability" in outcome.failure.message
    remedy = f"as root on pve1: ha-manager set vm:{build.placed.vmid} --state disabled"
    assert outcome.failure.remedy == remedy
    config.put(net0="virtio,bridge=vmbr0")
    shell.run(remedy)
    assert worker.run(a_power(build, PowerAction.START)).ok
    assert managed(root) == {f"vm:{build.placed.vmid}": "started"}
    assert worker.run(a_destroy(build)).gone


def test_a_managed_vm_is_adopted_and_released_as_it_is(
    worker: Worker, cluster: Cluster, root: Any, reckoning: Reckoning
) -> None:
    vmid, server = 904, ids.new_uuid()
    root.nodes("pve1").qemu.post(vmid=vmid, memory=64, name="pet", scsi0="local:1")
    eventually(lambda: (vm := cluster.vm(vmid)) and not vm["lock"], 20)
    root.nodes("pve1").qemu(vmid).status.start.post()
    eventually(lambda: cluster.vm(vmid)["status"] == "running", 20)
    root.cluster.ha.resources.post(sid=f"vm:{vmid}", state="started")
    before = cluster.vm(vmid)
    text = before["config"].get("smbios1", "")
    smbios = text.removeprefix("uuid=").split(",")[0] or None
    placed = Placed("pve1", "c1", "pve1", vmid)
    for number, on in ((1, True), (2, False)):
        command = Mark(
            10**8 + number,
            1,
            ResourceType.SERVER,
            server,
            placed,
            clock.after(60),
            on=on,
            smbios_uuid=smbios,
        )
        worker.client.execute(internal(), worker.service.address, command)
        [outcome] = worker.conductor.wait_for(
            lambda command=command: worker.conductor.outcomes(command) or None
        )
        assert outcome.ok, outcome
        now = cluster.vm(vmid)
        assert {name: now[name] for name in ("status", "pid", "node")} == {
            name: before[name] for name in ("status", "pid", "node")
        }
        assert (server in str(now["config"].get("description"))) == on
        assert managed(root) == {f"vm:{vmid}": "started"}
    assert cluster.vm(vmid)["config"] == before["config"]

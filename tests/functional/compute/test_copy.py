"""Images of servers, on a simulated cluster: a template, or nothing; the server runs on."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from common.messages.commands import Build, Copy, Image, PowerAction, RetireTemplate, Template
from common.messages.reports import Category
from common.resources.states import ResourceType
from tests.fixtures.storages import FILES, STORAGES, StorageType
from tests.functional.compute.conftest import (
    Cluster,
    RunningSimulator,
    Worker,
    a_build,
    a_copy,
    a_destroy,
    a_power,
    as_root,
    disk_storage,
)
from tests.functional.compute.reckoning import Reckoning
from tests.functional.waiting import eventually

_vmids = itertools.count(195_000)


@pytest.fixture
def build(worker: Worker) -> Build:
    build = a_build()
    assert worker.run(build).ok
    return build


@pytest.fixture
def vmid() -> int:
    """Where the image is to be."""
    return next(_vmids)


def is_template(cluster: Cluster, vmid: int) -> bool:
    vm = cluster.vm(vmid)
    return vm is not None and vm["config"].get("template") == "1"


def runs(cluster: Cluster, build: Build) -> bool:
    return bool(cluster.vm(build.placed.vmid)["status"] == "running")


def again(copy: Copy) -> Copy:
    """The command of the next attempt."""
    return dataclasses.replace(copy, attempt=copy.attempt + 1)


def retire(worker: Worker, copy: Copy) -> Any:
    command = RetireTemplate(
        copy.operation_id + 50_000,
        1,
        ResourceType.TEMPLATE,
        f"c1/{copy.placed.vmid}",
        copy.placed,
        copy.deadline,
        image_id=copy.image_id,
        cloud=copy.cloud,
    )
    return worker.run(command)


def built_of(copy: Copy, outcome: Any) -> Build:
    """The build of a server of the image."""
    assert outcome.disk is not None
    image = Image(copy.image_id, "copy", outcome.disk.volid, template_only=True)
    return a_build(image=image, template=Template(copy.placed.vmid, "pve1", disk_storage()))


@pytest.mark.parametrize("state", ["running", "stopped", "paused", "suspended"])
def test_an_image_and_a_server_of_it(
    worker: Worker, cluster: Cluster, build: Build, vmid: int, state: str, disk_kind: str
) -> None:
    kind = STORAGES.get(disk_kind, StorageType("dir", **FILES))
    action = {"stopped": "stop", "paused": "pause", "suspended": "suspend"}.get(state)
    if action is not None:
        assert worker.run(a_power(build, PowerAction(action))).ok
    before = cluster.vm(build.placed.vmid)
    copy = a_copy(build, vmid)
    outcome = worker.run(copy)
    assert outcome.ok, outcome
    assert outcome.disk is not None
    assert outcome.disk.volid.startswith(f"{disk_storage()}:")
    form = kind.suffix.lstrip(".") or "raw"
    assert (outcome.disk.disk_format, outcome.disk.virtual_size_bytes) == (form, 2 << 30)
    assert 0 < outcome.disk.size_bytes <= 2 << 30
    assert is_template(cluster, vmid)
    after = cluster.vm(build.placed.vmid)
    assert (after["status"], after["config"]) == (before["status"], before["config"])
    posts = len(cluster.calls("POST", "/qemu"))
    assert worker.run(again(copy)).disk == outcome.disk
    assert len(cluster.calls("POST", "/qemu")) == posts
    other = built_of(copy, outcome)
    assert worker.run(other).ok
    assert len(cluster.calls("POST", "/qemu")) == posts
    assert retire(worker, copy).gone == kind.clones_apart, "a linked clone depends on it"
    assert worker.run(a_power(other, PowerAction.REBOOT_HARD)).ok
    assert worker.run(a_destroy(other)).gone
    assert retire(worker, copy).gone
    assert cluster.is_empty(vmid)


@pytest.mark.parametrize("path", ["/qemu$", "/template$"])
@pytest.mark.parametrize("how", [{}, {"how": "drop"}, {"status": 599}, {"status": 500}])
def test_a_lost_answer_is_looked_for(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    vmid: int,
    path: str,
    how: dict[str, Any],
) -> None:
    posts = len(cluster.calls("POST", "/qemu"))
    simulator.fault(action="lose-answer", method="POST", path=path, **how)
    assert worker.run(a_copy(build, vmid)).ok
    assert len(cluster.calls("POST", "/qemu")) == posts + 1
    assert is_template(cluster, vmid)


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ("fail", "/qemu$"),
        ("task-fail", "/qemu$"),
        ("fail", "/template$"),
    ],
)
def test_what_fails_leaves_nothing_and_the_server_runs_on(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    vmid: int,
    action: str,
    path: str,
) -> None:
    text = "unable to create image: No space left on device"
    simulator.fault(action=action, method="POST", path=path, text=text, times=5)
    copy = a_copy(build, vmid)
    outcome = worker.run(copy)
    assert outcome.failure is not None
    assert outcome.failure.step == "compute_snapshot_instance"
    assert outcome.failure.category is Category.STORAGE_FULL
    assert (outcome.gone, outcome.failure.clean) == (True, True)
    assert cluster.is_empty(vmid)
    assert runs(cluster, build)
    posts = len(cluster.calls("POST", "/qemu"))
    assert worker.run(copy) == outcome, "a repeated command is answered, and makes nothing"
    assert len(cluster.calls("POST", "/qemu")) == posts


def test_a_copy_whose_worker_was_killed_is_the_operators(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    vmid: int,
    reckoning: Reckoning,
) -> None:
    reckoning.expect(f"VM {vmid}")
    simulator.fault(action="task-kill", method="POST", path="/qemu$")
    outcome = worker.run(a_copy(build, vmid))
    assert outcome.failure is not None
    assert not outcome.gone
    assert f"qm unlock {vmid} && qm destroy {vmid} --purge" in str(outcome.failure.remedy)
    assert runs(cluster, build)


def test_others_vms_are_left_alone(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build, vmid: int
) -> None:
    node = as_root(simulator).nodes("pve1")
    made = node.qemu.post(vmid=vmid, name="theirs", scsi0="local:1")
    eventually(lambda: node.tasks(made).status.get()["status"] == "stopped")
    before = cluster.vm(vmid)
    outcome = worker.run(a_copy(build, vmid))
    assert (outcome.ok, outcome.gone) == (False, False)
    assert cluster.vm(vmid) == before
    # And a disk that is not the server's is never copied.
    stolen = dataclasses.replace(a_copy(a_build(), next(_vmids)), source_vmid=build.placed.vmid)
    outcome = worker.run(stolen)
    assert outcome.failure is not None
    assert cluster.is_empty(stolen.placed.vmid)


def test_a_server_without_a_vm(worker: Worker, cluster: Cluster, vmid: int) -> None:
    outcome = worker.run(a_copy(a_build(), vmid))
    assert outcome.failure is not None
    assert (outcome.failure.step, outcome.failure.message) == (
        "compute_find_vm",
        "The server has no VM.",
    )
    assert cluster.is_empty(vmid)


def test_a_build_of_an_image_that_is_gone(
    worker: Worker, cluster: Cluster, build: Build, vmid: int
) -> None:
    copy = a_copy(build, vmid)
    outcome = worker.run(copy)
    assert retire(worker, copy).gone
    late = built_of(copy, outcome)
    ended = worker.run(late)
    assert ended.failure is not None
    assert ended.failure.category is Category.IMAGE_NOT_FOUND
    assert cluster.is_empty(late.placed.vmid)
    assert cluster.is_empty(vmid)

"""An image's file is there and as it was listed, or nothing is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.messages.commands import Build, Image, Template, VolumeSource
from common.messages.reports import Category
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_swap,
    a_volume,
    configuration,
    proxmox_text,
    template_vmid,
)
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

VOLID = "shared:import/fresh.qcow2"
MIB = 1 << 20


@pytest.fixture
def slow(simulator: RunningSimulator, worker: Worker, tmp_path: Path) -> Iterator[Worker]:
    """A worker that lists images once: a file may change after that."""
    put(simulator, 16 * MIB)
    text = proxmox_text(simulator).replace("content_seconds = 1", "content_seconds = 3600")
    running = Worker(configuration(tmp_path, text))
    running.start()
    yield running
    running.stop()


def put(simulator: RunningSimulator, size: int) -> None:
    simulator.control("POST", "volume", {"volid": VOLID, "size": size, "used": size})


def remove(worker: Worker) -> None:
    client = worker.hypervisors[0].shared.client  # type: ignore[attr-defined]
    upid = client.delete(f"nodes/pve1/storage/shared/content/{VOLID}")
    eventually(
        lambda: client.get(f"nodes/pve1/tasks/{upid}/status")["status"] == "stopped", 10, 0.05
    )


def of_fresh(**more: Any) -> Build:
    return a_build(image=Image(ids.named("image", "fresh"), "fresh", VOLID, 16 * MIB), **more)


@pytest.mark.parametrize("template", [True, False], ids=["template", "import"])
@pytest.mark.parametrize(
    ("size", "category", "words"),
    [
        (None, Category.IMAGE_NOT_FOUND, "is not there"),
        (0, Category.IMAGE_CORRUPT, "is no disk image"),
    ],
    ids=["removed", "empty"],
)
def test_a_file_that_is_not_as_it_was_listed_ends_the_build_before_anything_is_made(
    slow: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    template: bool,
    size: int | None,
    category: Category,
    words: str,
) -> None:
    remove(slow)
    if size is not None:
        put(simulator, size)
    simulator.control("DELETE", "calls")
    build = of_fresh() if template else of_fresh(template=None)
    outcome = slow.run(build)
    failure = outcome.failure
    assert failure is not None
    assert failure.category is category
    assert re.search(words, failure.message)
    assert (failure.step, outcome.gone) == ("compute_ensure_image", True)
    writes = [one for one in simulator.control("GET", "calls") if one["method"] != "GET"]
    assert writes == []
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("template", [True, False], ids=["template", "import"])
def test_a_replaced_file_is_listed_again_and_tried_once_more(
    slow: Worker, simulator: RunningSimulator, template: bool
) -> None:
    remove(slow)
    put(simulator, 24 * MIB)
    build = of_fresh() if template else of_fresh(template=None)
    outcome = slow.run(build)
    assert outcome.ok, outcome.failure
    step = slow.conductor.steps(build)["compute_ensure_image"]
    assert "changed since it was listed: then 16777216 bytes" in step.detail["listed_anew"]
    assert "now 25165824 bytes" in step.detail["listed_anew"]
    # What is reported of the image from now on is the new file.
    (listed,) = (one for one in slow.hypervisors[0].observe().cluster.images if one.volid == VOLID)
    assert listed.size_bytes == 24 * MIB


def test_a_file_that_was_replaced_by_a_larger_disk_than_the_flavors_ends_the_build(
    slow: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    remove(slow)
    put(simulator, 9 << 30)
    build = of_fresh(template=None)
    failure = slow.run(build).failure
    assert failure is not None
    assert failure.category is Category.IMAGE_CORRUPT
    assert f"needs 9 GiB; the server's disk has {build.disk_gib} GiB" in failure.message
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("way", ["template", "import", "flavor without a size"])
def test_a_file_that_becomes_a_larger_disk_than_it_said_ends_the_build(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, way: str
) -> None:
    # As a VMDK whose footer says another size than its header.
    put(simulator, 9 << 30)
    known = Image(ids.named("image", "fresh"), "fresh", VOLID, 9 << 30, 16 * MIB)
    changes: dict[str, Any] = {} if way == "template" else {"template": None}
    if way == "flavor without a size":
        changes["disk_gib"] = 0
    build = a_build(image=known, **changes)
    outcome = worker.run(build)
    failure = outcome.failure
    assert failure is not None
    assert failure.category is Category.IMAGE_CORRUPT, failure
    assert "became a disk of 9663676416 bytes" in failure.message
    assert (outcome.gone, failure.clean) == (True, True)
    assert cluster.is_empty(build.placed.vmid)
    if build.template is not None:
        assert cluster.is_empty(build.template.vmid)


def test_a_volume_that_becomes_larger_than_asked_for_is_not_made(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    put(simulator, 9 << 30)
    volume = a_volume(source=VolumeSource(VOLID), size_gib=3)
    outcome = worker.run(volume)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.IMAGE_CORRUPT
    assert "where 3 GiB were asked for" in outcome.failure.message
    assert outcome.gone
    assert cluster.is_empty(volume.placed.vmid)


def test_a_rebuild_with_a_larger_disk_than_the_flavors_gives_the_old_one_back(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build()
    assert worker.run(build).ok
    before = cluster.vm(build.placed.vmid)["config"]["scsi0"]
    put(simulator, 9 << 30)
    known = Image(ids.named("image", "fresh"), "fresh", VOLID, 9 << 30, 16 * MIB)
    failure = worker.run(a_swap(build, image=known)).failure
    assert failure is not None
    assert failure.category is Category.IMAGE_CORRUPT
    assert cluster.vm(build.placed.vmid)["config"]["scsi0"] == before


def test_a_file_that_is_replaced_all_the_time_ends_the_build(
    slow: Worker, simulator: RunningSimulator
) -> None:
    shared = slow.hypervisors[0].shared  # type: ignore[attr-defined]
    relist = shared.relist

    def and_replace_it_again(node: str, storage: str) -> None:
        relist(node, storage)
        remove(slow)
        put(simulator, 25 * MIB)

    shared.relist = and_replace_it_again
    remove(slow)
    put(simulator, 24 * MIB)
    failure = slow.run(of_fresh()).failure
    assert failure is not None
    assert failure.category is Category.IMAGE_CORRUPT
    assert "changed since it was listed: then 25165824 bytes" in failure.message


def test_a_file_of_the_same_size_but_another_time_is_another_file(
    worker: Worker, cluster: Cluster
) -> None:
    assert worker.run(a_build()).ok
    description = cluster.vm(template_vmid())["config"]["description"]
    assert re.search(r"source=.* of \d+ bytes, changed \d{4}-\S+\+00:00$", description, re.M)
    for changed, way in (
        (re.sub(r", changed \d{4}", ", changed 1999", description), "import_from"),
        # As an earlier release wrote it.
        (re.sub(r", changed .*", "", description), "linked_clone"),
    ):
        client = worker.hypervisors[0].shared.client  # type: ignore[attr-defined]
        client.post(f"nodes/pve1/qemu/{template_vmid()}/config", description=changed)
        worker.hypervisors[0]._templates._ready.clear()  # type: ignore[attr-defined]
        build = a_build(template=Template(template_vmid(), "pve1", "local"))
        assert worker.run(build).ok
        step = worker.conductor.steps(build)["compute_ensure_image"]
        assert step.detail["way"] == way
        assert worker.run(a_destroy(build)).gone

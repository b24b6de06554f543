"""An image's file is there and as it was listed, or nothing is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.messages.commands import Build, Image, Template
from common.messages.reports import Category
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    configuration,
    proxmox_text,
    template_vmid,
)
from tests.functional.simulator_fixture import RunningSimulator

VOLID = "shared:import/fresh.qcow2"
MIB = 1 << 20


@pytest.fixture
def slow(simulator: RunningSimulator, worker: Worker, tmp_path: Path) -> Iterator[Worker]:
    """One that lists images once: a file may change after that."""
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
    client.delete(f"nodes/pve1/storage/shared/content/{VOLID}")


def of_fresh(**more: Any) -> Build:
    return a_build(image=Image(ids.named("image", "fresh"), "fresh", VOLID, 16 * MIB), **more)


@pytest.mark.parametrize("template", [True, False], ids=["template", "import"])
@pytest.mark.parametrize(
    ("size", "category", "words"),
    [
        (None, Category.IMAGE_NOT_FOUND, "is not there"),
        (24 * MIB, Category.IMAGE_CORRUPT, r"changed since it was listed: then 16777216 bytes"),
        (0, Category.IMAGE_CORRUPT, "is no disk image"),
    ],
    ids=["removed", "replaced", "empty"],
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

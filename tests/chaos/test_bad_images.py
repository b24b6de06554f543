"""A user's bad image costs that user's builds, and nobody else's hosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from db import schema
from simulator.state.model import MIB
from tests.chaos.cloud import IMAGE
from tests.chaos.world import World, world

CORRUPT = "unable to create VM - qemu-img: Could not open: Image is not in qcow2 format"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """Two nodes that list their images only once: files change after that."""
    with world(tmp_path, {"compute": {"content_seconds": "3600"}}) as running:
        yield running


def speaks_against(cloud: World, uuid: str) -> dict[str, float]:
    """What the last decision about a server made of earlier failures, by host."""
    columns = schema.decisions.c
    mine = sa.select(schema.decisions).where(columns.server_uuid == uuid)
    query = mine.order_by(columns.attempt)
    body: dict[str, Any] = cloud.rows(query)[-1].body
    return {host: scores["build_failure"] for host, scores in body["scores"].items()}


def replace(cloud: World, **changed: Any) -> None:
    """Somebody puts another file in the place of an image's."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        files = [one for one in cluster.volumes.all() if one.name.startswith(f"import/{IMAGE}.")]
        for file in files:
            cluster.add_volume(dataclasses.replace(file, **changed))


def test_a_corrupt_image_pushes_no_host_down(cloud: World) -> None:
    cloud.simulator.fault(
        action="task-fail", method="POST", path=r"/pve\d/qemu$", times=0, text=CORRUPT
    )
    for name in ("bad-1", "bad-2", "bad-3"):
        row = cloud.built(name)
        assert row.vm_state == "error"
        assert [fault.category for fault in cloud.faults(row.uuid)] == ["image_corrupt"]
    cloud.calm()
    good = cloud.built("good")
    assert good.vm_state == "active"
    assert set(speaks_against(cloud, good.uuid).values()) == {0.0}
    # A host's own failure is held against it all the same.
    cloud.simulator.fault(
        action="task-fail", method="POST", path=r"/status/start$", text="no KVM today"
    )
    failed_once = cloud.built("unlucky")
    assert failed_once.vm_state == "active"
    (fault,) = cloud.faults(failed_once.uuid)
    after = speaks_against(cloud, cloud.built("after").uuid)
    assert after[fault.host] < 0


def test_a_replaced_image_is_listed_again_and_the_build_goes_on(cloud: World) -> None:
    replace(cloud, size=77 * MIB, ctime=1_700_000_000)
    row = cloud.built("web")
    assert row.vm_state == "active"
    assert cloud.faults(row.uuid) == []
    events = schema.operation_events.c
    (step,) = cloud.rows(
        sa.select(schema.operation_events).where(events.name == "compute_ensure_image")
    )
    assert f"now {77 * MIB} bytes" in step.detail["listed_anew"]
    cloud.until(
        lambda: (
            cloud.rows(sa.select(schema.images.c.size_bytes).where(schema.images.c.name == IMAGE))[
                0
            ].size_bytes
            == 77 * MIB
        )
    )

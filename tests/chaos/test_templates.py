"""A cached template in a whole cloud: there while it is needed, and then gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from conductor.templates import TemplateKeeper
from db import schema
from tests.chaos.world import World, world


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """One whose templates go as soon as nobody needs them."""
    with world(tmp_path, {"conductor": {"template_grace_seconds": "0"}}) as running:
        yield running
        assert running.clear_away() == ""


def templates(cloud: World) -> dict[int, Any]:
    """Those in the cluster, by VMID."""
    vms = cloud.simulator.state()["sim1"]["vms"]
    return {vm["vmid"]: vm for vm in vms if vm["config"].get("template")}


def recorded(cloud: World) -> set[int]:
    """VMIDs of templates by the record."""
    return {row.vmid for row in cloud.rows(sa.select(schema.templates))}


def look(cloud: World) -> None:
    """As every conductor does now and then."""
    service: Any = cloud._services["conductor"]
    for chore in service.runner.chores:
        keeper = getattr(chore, "__self__", None)
        if isinstance(keeper, TemplateKeeper):
            keeper.tidy()


def test_a_template_goes_when_its_image_and_its_servers_have_gone(cloud: World) -> None:
    first = cloud.built("first")
    assert first.vm_state == "active"
    made = set(templates(cloud))
    assert made == recorded(cloud)
    for _ in range(3):
        look(cloud)
    assert set(templates(cloud)) == made

    # Somebody removes the image's file from the storage; the server lives on.
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        for volume in list(cluster.volumes.all()):
            if "cirros" in volume.name and volume.content == "import":
                cluster.remove_volume(volume)
    image = sa.select(schema.images.c.id).where(schema.images.c.id == first.image_id)
    cloud.until(lambda: not cloud.rows(image))
    for _ in range(3):
        look(cloud)
    assert set(templates(cloud)) == made, "a linked clone hangs on it"

    cloud.delete(first.uuid)
    cloud.until(lambda: cloud.gone(first.uuid))
    look(cloud)
    look(cloud)
    cloud.until(lambda: not templates(cloud))
    cloud.until(lambda: not recorded(cloud))
    kept = cloud.rows(sa.select(schema.vmids.c.vmid).where(schema.vmids.c.vmid.in_(made)))
    assert kept == []
    assert cloud.differences() == []

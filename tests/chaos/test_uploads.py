"""Uploads in a whole cloud: whatever dies on the way, the image gets there, or nothing is left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.messages.reports import Category
from conductor.images.templates import TemplateKeeper
from db import schema
from tests.chaos.image_door import ImageDoor, image_door
from tests.chaos.world import World, world

DATA = os.urandom(5 * 2**20)
UPLOAD = {"method": "POST", "path": "/upload$", "times": 1}


class Site:
    """A cloud with the Image API beside it."""

    def __init__(self, cloud: World, door: ImageDoor) -> None:
        self.cloud, self._door = cloud, door

    def send(self, name: str) -> str:
        """Make an image and send its data; returns its id at once."""
        made = self._door.make(name)
        assert made.ok, made.text
        image_id = str(made.json()["id"])
        answer = self._door.send(image_id, DATA)
        assert answer.ok, answer.text
        return image_id

    def delete(self, image_id: str) -> None:
        answer = self._door.delete(image_id)
        assert answer.ok, answer.text

    def becomes(self, image_id: str, status: str) -> None:
        columns = schema.images.c
        query = sa.select(columns.status).where(columns.id == image_id)
        self.cloud.until(lambda: self.cloud.rows(query)[0].status == status)

    def files(self) -> dict[str, int]:
        """Sizes of what is on the cluster's storages of uploads."""
        volumes = self.cloud.simulator.state()["sim1"]["volumes"]
        return {one["volid"]: one["size"] for one in volumes if "/mn-" in one["volid"]}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with (
        world(tmp_path, {"conductor": {"template_grace_seconds": "0"}}) as cloud,
        image_door(cloud.conf, cloud.database_url, cloud.client, tmp_path / "spool") as door,
    ):
        yield Site(cloud, door)


def _restart(kind: str) -> Callable[[World], None]:
    def act(cloud: World) -> None:
        cloud.until(lambda: _working(cloud))
        cloud.restart(kind)
        cloud.calm()

    return act


def _working(cloud: World) -> bool:
    """Whether an agent has the upload."""
    owners = [row.lease_owner for row in cloud.open_operations()]
    return any(owner and owner.startswith("compute:") for owner in owners)


@pytest.mark.parametrize(
    ("fault", "then"),
    [
        ({"action": "hang"}, _restart("compute")),
        ({"action": "hang"}, _restart("conductor")),
        ({"action": "lose-answer"}, None),
        ({"action": "drop"}, None),
        ({"action": "task-kill"}, None),
        ({"action": "task-fail", "text": "command 'cp' failed: exit code 1"}, None),
    ],
    ids=["agent", "conductor", "answer", "connection", "task", "copy"],
)
def test_an_image_gets_there_whatever_fails(
    site: Site, fault: dict[str, str], then: Callable[[World], None] | None
) -> None:
    cloud = site.cloud
    order: dict[str, Any] = {**UPLOAD, **fault}
    cloud.simulator.fault(**order)
    image_id = site.send("own")
    if then is not None:
        then(cloud)
    site.becomes(image_id, "active")
    assert list(site.files().values()) == [len(DATA)]
    cloud.until(lambda: not cloud.open_operations())
    site.delete(image_id)
    cloud.until(lambda: not site.files())
    cloud.until(lambda: not cloud.open_operations())


def test_servers_outlive_the_image_and_nothing_outlives_them(site: Site) -> None:
    cloud = site.cloud
    image_id = site.send("own")
    site.becomes(image_id, "active")
    made = cloud.built("web", image_id)
    assert made.vm_state == "active"
    site.delete(image_id)
    cloud.until(lambda: not site.files())
    assert cloud.server(made.uuid).vm_state == "active"
    cloud.delete(made.uuid)
    cloud.until(lambda: cloud.gone(made.uuid))
    cloud.until(lambda: _look(cloud) and not _templates(cloud, image_id))


def _templates(cloud: World, image_id: str) -> list[Any]:
    return cloud.rows(sa.select(schema.templates).where(schema.templates.c.image_id == image_id))


def _look(cloud: World) -> bool:
    """Look as every conductor does now and then; return True."""
    service: Any = cloud._services["conductor"]
    for task in service.runner.periodic.tasks:
        keeper = getattr(task.work, "__self__", None)
        if isinstance(keeper, TemplateKeeper):
            keeper.tidy()
    return True


def test_a_cluster_that_refuses_for_good_is_given_up_and_left_clean(site: Site) -> None:
    cloud = site.cloud
    text = "Permission check failed (/storage/shared, Datastore.AllocateTemplate)"
    cloud.simulator.fault(
        action="fail", method="POST", path="/upload$", times=0, status=403, text=text
    )
    image_id = site.send("own")
    site.becomes(image_id, "killed")
    cloud.until(lambda: not cloud.open_operations())
    assert site.files() == {}
    faults = cloud.rows(sa.select(schema.faults))
    assert {row.category for row in faults} == {Category.AUTHORIZATION}
    site.delete(image_id)

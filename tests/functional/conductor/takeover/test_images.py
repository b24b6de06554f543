"""Images in clusters: their templates and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common.messages.commands import (
    MakeVolume,
    StoreImage,
)
from common.resources.states import InternalAction
from common.resources.volumes import VolumeAction
from conductor.endpoints.images import ImageEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.images import cache_image, image_source, remove_image, remove_template
from conductor.plans import Place
from conductor.rpc.images import ImageData, NewImage
from conductor.store.hosts import registry
from conductor.store.images import templates
from conductor.store.records import Operation
from tests.functional.conductor.harness import IMAGE
from tests.functional.conductor.takeover.begin import (
    Story,
    operation_on,
    refused,
    volume,
)
from tests.functional.conductor.takeover.cloud import ADMIN, Cloud
from tests.functional.conductor.takeover.deaths import Takeover


def _remove_template(cloud: Cloud) -> Operation:
    conductor = cloud.world.conductor

    def work(connection: sa.Connection) -> Operation | None:
        facts, _ = registry.host(connection, "pve1")
        template = templates.reserve(connection, facts, "an-image-that-went")
        assert template is not None
        known = templates.get(connection, "sim1", template.vmid)
        assert known is not None
        templates.mark(connection, known, templates.RETIRING)
        where = Place("pve1", None, "sim1", "pve1", template.vmid)
        return remove_template.begin(connection, conductor.cloud, where, known.image_id)

    operation = conductor.store.run(work)
    assert operation is not None
    return operation


def _cache_image(cloud: Cloud) -> Operation:
    conductor = cloud.world.conductor

    def work(connection: sa.Connection) -> Operation | None:
        facts, _ = registry.host(connection, "pve1")
        image = image_source.image(connection, IMAGE, facts)
        assert image is not None
        return cache_image.begin(connection, conductor.cloud, ADMIN, facts, image)

    operation = conductor.store.run(work)
    assert operation is not None
    return operation


def _store_image(cloud: Cloud) -> Operation:
    """A user's upload is stored on the cluster's one shared storage."""
    conductor, ctxt = cloud.world.conductor, cloud.world.ctxt
    endpoint = ImageEndpoint(conductor.cloud)
    new = NewImage("p", disk_format="qcow2", container_format="bare")
    image_id = endpoint.create_image(ctxt, new)
    data = ImageData("http://api/spool", "secret", 5, 1 << 30, "qcow2", "0" * 32, "0" * 128)
    endpoint.save_image(ctxt, image_id, data)
    return operation_on(cloud, image_id, InternalAction.STORE_IMAGE)


def _overtaken_store(cloud: Cloud) -> Operation:
    operation = _store_image(cloud)
    conductor = cloud.world.conductor.cloud
    remove_image.delete(conductor, cloud.world.ctxt, operation.resource_id)
    return operation


def _remove_image(cloud: Cloud) -> Operation:
    operation = _store_image(cloud)
    cloud.work_off(cloud.heir, operation)
    conductor = cloud.world.conductor.cloud
    remove_image.delete(conductor, cloud.world.ctxt, operation.resource_id)
    return operation_on(cloud, operation.resource_id, InternalAction.REMOVE_IMAGE)


def _reimage(cloud: Cloud) -> Operation:
    made = volume(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.reimage_volume(cloud.world.ctxt, made, IMAGE, reserved=False)
    return operation_on(cloud, made, VolumeAction.REIMAGE)


STORIES: Mapping[tuple[str, str], Story] = {
    (VolumeAction.REIMAGE, "well"): _reimage,
    (VolumeAction.REIMAGE, "in vain"): lambda cloud: refused(cloud, MakeVolume, _reimage),
    (InternalAction.REMOVE_TEMPLATE, "well"): _remove_template,
    (InternalAction.CACHE_IMAGE, "well"): _cache_image,
    (InternalAction.STORE_IMAGE, "well"): _store_image,
    (InternalAction.STORE_IMAGE, "in vain"): lambda cloud: refused(
        cloud, StoreImage, _store_image
    ),
    (InternalAction.STORE_IMAGE, "overtaken by a delete"): _overtaken_store,
    (InternalAction.REMOVE_IMAGE, "well"): _remove_image,
}


class TestImages(Takeover):
    stories = STORIES

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        if action == InternalAction.STORE_IMAGE:
            made = {"well": [("active", {"sim1"})], "in vain": [("killed", set())]}
            assert ends["image"] == made.get(how, [])
            removed = [one for kind, one in ends["others"] if kind == InternalAction.REMOVE_IMAGE]
            assert removed == ([] if how == "well" else ["done"])

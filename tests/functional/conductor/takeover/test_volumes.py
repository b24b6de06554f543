"""Volumes: made, changed, copied to an image, and removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common import ids
from common.messages.commands import (
    Copy,
    GrowVolume,
    MakeVolume,
    RetypeVolume,
)
from common.messages.facts import StorageFacts
from common.resources.volumes import VolumeAction
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.images import remove_image
from conductor.rpc.volumes.volumes import NewVolumeImage
from conductor.store.records import Operation
from conductor.store.volumes import volumes as volume_store
from conductor.volumes.snapshots import park_volume
from conductor.volumes.volume_types import VolumeTypes
from db import schema
from tests.functional.conductor.takeover.begin import (
    Story,
    create_volume,
    operation_on,
    refused,
    volume,
)
from tests.functional.conductor.takeover.cloud import ADMIN, BROKEN, Cloud
from tests.functional.conductor.takeover.deaths import Takeover


def _delete_volume(cloud: Cloud) -> Operation:
    made = volume(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_volume(cloud.world.ctxt, made, force=False)
    return operation_on(cloud, made, VolumeAction.DELETE)


def _extend_volume(cloud: Cloud) -> Operation:
    made = volume(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.extend_volume(cloud.world.ctxt, made, 5, in_use=False)
    return operation_on(cloud, made, VolumeAction.EXTEND)


def _retype_volume(cloud: Cloud, *, silent: bool = False) -> Operation:
    """A volume moves to another storage; ``silent``: the answer is lost."""
    cloud.silent = silent
    other = StorageFacts("other", "lvmthin", False, True, 1000, 100, ("images",))
    cloud.world.storages.append(other)
    made = volume(cloud)
    VolumeTypes(cloud.world.conductor.cloud).follow()
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    type_id = ids.named("volume_type", "other")
    endpoint.retype_volume(cloud.world.ctxt, made, type_id, may_move=True)
    return operation_on(cloud, made, VolumeAction.RETYPE)


def _upload_volume(cloud: Cloud) -> Operation:
    made = volume(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.upload_volume(cloud.world.ctxt, made, NewVolumeImage("golden"))
    return operation_on(cloud, made, VolumeAction.UPLOAD)


def _overtaken_upload(cloud: Cloud) -> Operation:
    """The image is deleted while it is made."""
    operation = _upload_volume(cloud)
    (image,) = [one for one in cloud.world.rows(schema.images) if one.project_id is not None]
    remove_image.delete(cloud.heir.cloud, ADMIN, image.id)
    return operation


def _park_volume(cloud: Cloud) -> Operation:
    made = volume(cloud)
    conductor = cloud.world.conductor.cloud

    def work(connection: sa.Connection) -> Operation:
        row = volume_store.locked(connection, made, None)
        return park_volume.begin(connection, conductor, cloud.world.ctxt, row)

    return conductor.store.run(work)


#: {action: {how: what becomes of volumes}}; see ``Cloud.volumes``
ENDS: Mapping[str, Mapping[str, list[Any]]] = {
    VolumeAction.CREATE: {
        "well": [("available", 2, False), []],
        "in vain": [("error", 2, True), []],
    },
    VolumeAction.DELETE: {"well": [[]]},
    VolumeAction.EXTEND: {
        "well": [("available", 5, False), []],
        "in vain": [("error_extending", 2, False), []],
    },
    VolumeAction.RETYPE: {
        how: [("available", 2, False), []]
        for how in ("well", "badly", "well, though the answer was lost")
    },
    VolumeAction.UPLOAD: {
        how: [("available", 2, False), []] for how in ("well", "badly", "overtaken by a delete")
    },
    VolumeAction.REIMAGE: {
        "well": [("available", 2, False), []],
        "in vain": [("error", 2, False), []],
    },
    VolumeAction.PARK: {"well": [("available", 2, False), []]},
}

STORIES: Mapping[tuple[str, str], Story] = {
    (VolumeAction.CREATE, "well"): create_volume,
    (VolumeAction.CREATE, "in vain"): lambda cloud: refused(cloud, MakeVolume, create_volume),
    (VolumeAction.DELETE, "well"): _delete_volume,
    (VolumeAction.EXTEND, "well"): _extend_volume,
    (VolumeAction.RETYPE, "well"): _retype_volume,
    (VolumeAction.RETYPE, "badly"): lambda cloud: refused(cloud, RetypeVolume, _retype_volume),
    (VolumeAction.RETYPE, "well, though the answer was lost"): lambda cloud: _retype_volume(
        cloud, silent=True
    ),
    (VolumeAction.UPLOAD, "well"): _upload_volume,
    (VolumeAction.UPLOAD, "badly"): lambda cloud: refused(cloud, Copy, _upload_volume),
    (VolumeAction.UPLOAD, "overtaken by a delete"): _overtaken_upload,
    (VolumeAction.PARK, "well"): _park_volume,
    (VolumeAction.EXTEND, "in vain"): lambda cloud: refused(cloud, GrowVolume, _extend_volume),
}


class TestVolumes(Takeover):
    stories = STORIES

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        assert ends["volumes"] == ENDS[action][how]
        if action == VolumeAction.RETYPE:
            where, why = ("data", BROKEN.message) if how == "badly" else ("other", None)
            assert ends["places"] == [(where, where, None, why)]
        elif action == VolumeAction.UPLOAD:
            assert ends["made"] == ([("active", 2)] if how == "well" else [])
            assert cloud.copies() == (how == "well")
        else:
            assert ends["snapshots"] == []

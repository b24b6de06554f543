"""`os-retype` and `os-volume_upload_image`: answers and refusals are Cinder's."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.commands import RetypeVolume
from common.messages.facts import StorageFacts
from common.messages.reports import MadeVolume
from conductor.volumes.volume_types import VolumeTypes
from db import schema
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.api_volume.test_volumes import OTHER, made, make, message, show
from tests.functional.waiting import eventually

OWN = StorageFacts("own", "lvmthin", False, True, 1000, 100, ("images",))


@pytest.fixture
def volume_id(api: VolumeApi) -> str:
    api.world.storages.append(OWN)
    api.world.beat()
    VolumeTypes(api.world.conductor.cloud).follow()
    return made(api, name="data", description="d", volume_type="data")


def act(api: VolumeApi, volume_id: str, name: str, asked: Any, **more: Any) -> Any:
    return api.ask("POST", f"/volumes/{volume_id}/action", {name: asked}, **more)


def retype(api: VolumeApi, volume_id: str, new_type: Any, **more: Any) -> Any:
    asked = {"new_type": new_type, "migration_policy": more.pop("policy", "on-demand")}
    return act(api, volume_id, "os-retype", asked, **more)


def test_a_retype(api: VolumeApi, volume_id: str) -> None:
    assert retype(api, volume_id, "own") == (202, None)
    assert show(api, volume_id)["status"] == "retyping"
    status, why = message(retype(api, volume_id, "own"))
    assert (status, "Retype needs volume to be in available" in why) == (400, True)

    def last() -> Any:
        sent = [one for _, one in api.world.compute.sent if isinstance(one, RetypeVolume)]
        return sent[-1] if sent else None

    eventually(last)
    volid = f"own:vm-{last().placed.vmid}-disk-0"
    api.world.answer(last(), ok=True, volume=MadeVolume(volid, 1 << 30))
    eventually(lambda: show(api, volume_id)["status"] == "available")
    shown = show(api, volume_id, version="3.63", token=auth.ADMIN)
    assert (shown["volume_type"], shown["os-vol-host-attr:host"]) == ("own", "pve1@own#own")
    types = api.ask("GET", "/types")[1]["volume_types"]
    assert shown["volume_type_id"] in [one["id"] for one in types if one["name"] == "own"]
    # By its id, and to the type that it has.
    assert message(retype(api, volume_id, shown["volume_type_id"]))[0] == 400


def test_a_retype_that_can_not_be_is_reported_in_a_message(api: VolumeApi, volume_id: str) -> None:
    for asked in ({"new_type": "own"}, {"new_type": "own", "migration_policy": "never"}):
        assert act(api, volume_id, "os-retype", asked) == (202, None)
        shown = show(api, volume_id)
        assert (shown["status"], shown["volume_type"]) == ("available", "data")
    listed = api.ask("GET", "/messages", version="3.3")[1]["messages"]
    assert len(listed) == 2
    assert all("its migration is not allowed" in one["user_message"] for one in listed)


def test_bad_retypes(api: VolumeApi, volume_id: str) -> None:
    assert message(retype(api, volume_id, "gold"))[0] == 404
    assert message(retype(api, volume_id, ""))[0] == 404
    for asked in (
        {},
        {"new_type": 5},
        {"new_type": None},
        {"new_type": "own", "migration_policy": "now"},
        {"new_type": "own", "migration_policy": None},
        {"new_type": "own", "more": 1},
    ):
        assert act(api, volume_id, "os-retype", asked)[0] == 400, asked
    assert retype(api, volume_id, "own", token=OTHER)[0] == 404
    assert retype(api, volume_id, "own", token=auth.READER)[0] == 403
    assert message(retype(api, make(api, volume_type="data"), "own"))[0] == 400
    quota = {"quota_set": {"gigabytes_own": 0}}
    assert api.ask("PUT", "/os-quota-sets/demo", quota, token=auth.ADMIN)[0] == 200
    status, why = message(retype(api, volume_id, "own"))
    assert (status, "gigabytes_own" in why) == (413, True)
    assert show(api, volume_id)["status"] == "available"


def test_a_private_type_is_another_project_s(api: VolumeApi, volume_id: str) -> None:
    gold = {"name": "gold", "os-volume-type-access:is_public": False}
    assert api.ask("POST", "/types", {"volume_type": gold}, token=auth.ADMIN)[0] == 200
    assert retype(api, volume_id, "gold")[0] == 404
    assert retype(api, volume_id, "gold", policy="never", token=auth.ADMIN)[0] == 202
    assert show(api, volume_id)["volume_type"] == "gold"


def upload(api: VolumeApi, volume_id: str, **more: Any) -> Any:
    version, token = more.pop("version", "3.0"), more.pop("token", auth.MEMBER)
    asked = {"image_name": "golden", **more}
    return act(api, volume_id, "os-volume_upload_image", asked, version=version, token=token)


def images(api: VolumeApi) -> list[Any]:
    return [one for one in api.world.rows(schema.images) if one.project_id is not None]


def test_an_upload(api: VolumeApi, volume_id: str) -> None:
    updated = show(api, volume_id)["updated_at"]
    status, body = upload(api, volume_id, disk_format="qcow2", container_format="bare")
    assert status == 202, body
    answer = body["os-volume_upload_image"]
    (image,) = images(api)
    assert answer.pop("volume_type")["name"] == "data"
    assert answer == {
        "id": volume_id,
        "updated_at": updated,
        "status": "uploading",
        "display_description": "d",
        "size": 1,
        "image_id": image.id,
        "container_format": "bare",
        "disk_format": "qcow2",
        "image_name": "golden",
        "protected": False,
        "visibility": "shared",
    }
    assert show(api, volume_id)["status"] == "uploading"
    assert (image.name, image.visibility, image.min_disk_gib) == ("golden", "shared", 1)
    status, why = message(upload(api, volume_id, force=True))
    assert (status, f"Volume {volume_id} status must be available" in why) == (400, True)


@pytest.mark.parametrize(
    ("asked", "token", "shown"),
    [
        ({}, auth.MEMBER, ("private", False)),
        ({"visibility": "community", "protected": "true"}, auth.MEMBER, ("community", True)),
        ({"visibility": "public"}, auth.ADMIN, ("public", False)),
    ],
)
def test_since_3_1_who_sees_it_is_asked_for(
    api: VolumeApi, volume_id: str, asked: Any, token: str, shown: Any
) -> None:
    status, body = upload(api, volume_id, version="3.1", token=token, **asked)
    assert status == 202, body
    answer = body["os-volume_upload_image"]
    assert (answer["visibility"], answer["protected"]) == shown
    (image,) = images(api)
    assert (image.visibility, image.protected) == shown


def test_bad_uploads(api: VolumeApi, volume_id: str) -> None:
    for asked in (
        {"image_name": ""},
        {"image_name": "x" * 256},
        {"image_name": None},
        {"disk_format": "floppy"},
        {"disk_format": "vhd"},
        {"container_format": "ovf"},
        {"container_format": "compressed"},
        {"force": "perhaps"},
        {"visibility": "private"},
        {"protected": True},
        {"version": "3.1", "visibility": "secret"},
        {"version": "3.1", "protected": "perhaps"},
        {"more": 1},
    ):
        assert message(upload(api, volume_id, **asked))[0] == 400, asked
    assert act(api, volume_id, "os-volume_upload_image", {})[0] == 400
    assert upload(api, volume_id, version="3.1", visibility="public")[0] == 403
    assert upload(api, volume_id, token=OTHER)[0] == 404
    assert upload(api, volume_id, token=auth.READER)[0] == 403
    assert message(upload(api, make(api)))[0] == 400
    assert images(api) == []
    assert show(api, volume_id)["status"] == "available"

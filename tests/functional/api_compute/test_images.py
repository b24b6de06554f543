"""Images and backups of a server: who may, with which bodies, and which words refuse it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"
IMAGE = {"createImage": {"name": "copy", "metadata": {"os_distro": "debian", "mine": "yes"}}}
BACKUP = {"createBackup": {"name": "copy", "backup_type": "daily", "rotation": 2}}


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(a_full_server(1))


def act(api: ComputeApi, body: Any, token: str = auth.MEMBER, version: str = "2.104") -> Any:
    return api.request("POST", f"{SERVER}/action", body, token=token, version=version)


def text(answer: Any) -> str:
    [fault] = answer.json.values()
    return str(fault["message"])


def image_of(api: ComputeApi) -> Any:
    """The image that was made."""
    columns = schema.images.c
    with api.writer.connect() as connection:
        query = sa.select(schema.images).where(columns.server_uuid == uuid_of(1))
        return connection.execute(query).one_or_none()


def test_an_image_is_accepted(api: ComputeApi) -> None:
    answer = act(api, IMAGE)
    made = image_of(api)
    assert (answer.status_code, answer.json) == (202, {"image_id": made.id})
    assert "Location" not in answer.headers
    server = api.get(SERVER, version="2.104").json["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == (
        "ACTIVE",
        "image_snapshot_pending",
    )
    assert (made.name, made.status, made.project_id) == ("copy", "queued", "demo")
    assert made.properties["image_type"] == "snapshot"
    assert made.properties["instance_uuid"] == uuid_of(1)
    assert made.properties["base_image_ref"] == server["image"]["id"]
    assert (made.properties["os_distro"], made.properties["mine"]) == ("debian", "yes")
    assert made.min_disk_gib == server["flavor"]["disk"]
    again = act(api, IMAGE)
    assert again.status_code == 409
    assert text(again) == (
        f"Cannot 'createImage' instance {uuid_of(1)} while it is in task_state "
        "image_snapshot_pending"
    )


def test_before_2_45_a_header_names_the_image(api: ComputeApi) -> None:
    answer = act(api, IMAGE, version="2.44")
    assert (answer.status_code, answer.text) == (202, "")
    assert answer.headers["Location"].endswith(f"/images/{image_of(api).id}")


def test_a_backup_is_accepted(api: ComputeApi) -> None:
    answer = act(api, BACKUP)
    made = image_of(api)
    assert (answer.status_code, answer.json) == (202, {"image_id": made.id})
    assert (made.properties["image_type"], made.properties["backup_type"]) == ("backup", "daily")
    server = api.get(SERVER, version="2.104").json["server"]
    assert server["OS-EXT-STS:task_state"] == "image_backup"


def test_of_a_backup_that_is_not_kept_there_is_no_image(api: ComputeApi) -> None:
    answer = act(api, {"createBackup": {**BACKUP["createBackup"], "rotation": 0}})
    assert (answer.status_code, answer.text) == (202, "")
    assert "Location" not in answer.headers
    assert image_of(api) is None


@pytest.mark.parametrize(
    "body",
    [
        {"createImage": {}},
        {"createImage": {"name": ""}},
        {"createImage": {"name": " copy"}},
        {"createImage": {"name": "x" * 256}},
        {"createImage": {"name": "copy", "metadata": {"": "v"}}},
        {"createImage": {"name": "copy", "metadata": {"k": 1}}},
        {"createImage": {"name": "copy", "rotation": 1}},
        {"createBackup": {"name": "copy", "backup_type": "daily"}},
        {"createBackup": {"name": "copy", "backup_type": "daily", "rotation": -1}},
        {"createBackup": {"name": "copy", "backup_type": "daily", "rotation": "x"}},
        {"createBackup": {"name": "copy", "backup_type": 1, "rotation": 1}},
    ],
    ids=str,
)
def test_malformed_bodies_change_nothing(api: ComputeApi, body: Any) -> None:
    answer = act(api, body)
    assert answer.status_code == 400
    assert image_of(api) is None


@pytest.mark.parametrize("body", [IMAGE, BACKUP], ids=["image", "backup"])
@pytest.mark.parametrize("state", ["error", "resized", "building"])
def test_the_state_decides(make: MakeApi, body: Any, state: str) -> None:
    api = make(a_full_server(1, vm_state=state))
    answer = act(api, body)
    (label,) = body
    assert (answer.status_code, text(answer)) == (
        409,
        f"Cannot '{label}' instance {uuid_of(1)} while it is in vm_state {state}",
    )
    assert image_of(api) is None


@pytest.mark.parametrize("state", ["stopped", "paused", "suspended"])
def test_it_need_not_run(make: MakeApi, state: str) -> None:
    assert act(make(a_full_server(1, vm_state=state)), IMAGE).status_code == 202


def test_a_lock_does_not_matter(make: MakeApi) -> None:
    assert act(make(a_full_server(1, locked_by="admin")), IMAGE).status_code == 202


@pytest.mark.parametrize("body", [IMAGE, BACKUP], ids=["image", "backup"])
def test_who_may(api: ComputeApi, body: Any) -> None:
    assert act(api, body, auth.READER).status_code == 403
    assert act(api, body, auth.OTHER).status_code == 404
    assert act(api, body, auth.ADMIN).status_code == 202


def test_the_quota_of_metadata_counts_up_to_2_38(api: ComputeApi) -> None:
    many = {f"k{number}": "v" for number in range(129)}
    body = {"createImage": {"name": "copy", "metadata": many}}
    refused = act(api, body, version="2.38")
    assert (refused.status_code, text(refused)) == (403, "Image metadata limit exceeded")
    assert image_of(api) is None
    assert act(api, body, version="2.39").status_code == 202


@pytest.mark.parametrize(
    ("name", "status"),
    [
        *((name, 400) for name in ("visibility", "owner", "protected", "min_disk", "tags")),
        *((name, 403) for name in ("id", "status", "location", "os_glance_x", "created_at")),
    ],
)
def test_metadata_are_no_attributes_of_an_image(api: ComputeApi, name: str, status: int) -> None:
    for kind, more in (("createImage", {}), ("createBackup", BACKUP["createBackup"])):
        asked = {kind: {**more, "name": "copy", "metadata": {name: "public"}}}
        assert act(api, asked).status_code == status
    assert image_of(api) is None

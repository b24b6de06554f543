"""Rebuild: who may, with which bodies, what it answers, and what is refused in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common import ids
from tests.fixtures import auth
from tests.fixtures.compute import IMAGE, ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import an_image
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

UUID = uuid_of(1)
SERVER = f"/servers/{UUID}"
OTHER = ids.named("image", "other")
LARGE = ids.named("image", "large")
GONE = ids.named("image", "gone")
LISTED = json.dumps(
    [{"source_type": "snapshot", "destination_type": "volume", "snapshot_id": GONE}]
)
FILE = {"path": "/a", "contents": "eA=="}


@pytest.fixture
def make_server(make: MakeApi) -> Any:
    def made(**changes: Any) -> ComputeApi:
        return make(
            a_full_server(1, **changes),
            an_image("other", properties={"os_type": "linux"}),
            an_image("large", min_disk_gib=21),
            an_image("hungry", min_ram_mib=4096),
            an_image("queued", status="queued"),
            an_image("off", status="deactivated"),
            an_image("volumes", properties={"block_device_mapping": LISTED}, locations={}),
            an_image("shelved", server_uuid=uuid_of(2), locations={}),
        )

    return made


@pytest.fixture
def api(make_server: Any) -> ComputeApi:
    made: ComputeApi = make_server()
    return made


def rebuild(
    api: ComputeApi, token: str = auth.MEMBER, version: str = "2.104", **asked: Any
) -> Any:
    body = {"rebuild": {"imageRef": IMAGE, **asked}}
    return api.request("POST", f"{SERVER}/action", body, token=token, version=version)


def text(answer: Any) -> str:
    [fault] = answer.json.values()
    return str(fault["message"])


def test_a_rebuild_is_accepted(api: ComputeApi) -> None:
    answer = rebuild(
        api,
        imageRef=OTHER,
        name="new",
        adminPass="secret",
        description="more",
        metadata={"a": "b"},
        hostname="new.example",
        user_data="eA==",
        key_name=None,
        accessIPv4="192.0.2.1",
        preserve_ephemeral=False,
        trusted_image_certificates=None,
        **{"OS-DCF:diskConfig": "AUTO"},
    )
    assert answer.status_code == 202, answer.json
    assert answer.headers["Location"].endswith(SERVER)
    server = answer.json["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("REBUILD", "rebuilding")
    assert (server["name"], server["description"], server["metadata"]) == (
        *("new", "more", {"a": "b"}),
    )
    assert (server["image"]["id"], server["image"]["properties"]) == (OTHER, {"os_type": "linux"})
    assert (server["adminPass"], server["user_data"], server["key_name"]) == (
        *("secret", "eA==", None),
    )
    assert (server["OS-EXT-SRV-ATTR:hostname"], server["accessIPv4"]) == (
        *("new.example", "192.0.2.1"),
    )
    assert server["OS-DCF:diskConfig"] == "AUTO"
    again = rebuild(api)
    assert again.status_code == 409
    words = f"Cannot 'rebuild' instance {UUID} while it is in task_state rebuilding"
    assert text(again) == words


@pytest.mark.parametrize(
    ("version", "has", "has_not"),
    [
        ("2.1", {"adminPass"}, {"key_name", "user_data", "description", "locked"}),
        ("2.53", {"description", "tags"}, {"key_name", "user_data"}),
        ("2.54", {"key_name"}, {"user_data", "OS-EXT-STS:task_state"}),
        ("2.74", {"user_data", "server_groups"}, {"OS-EXT-STS:task_state"}),
        ("2.75", {"OS-EXT-STS:task_state", "config_drive"}, set()),
    ],
)
def test_the_answer_by_version(
    api: ComputeApi, version: str, has: set[str], has_not: set[str]
) -> None:
    server = rebuild(api, version=version).json["server"]
    assert has <= server.keys()
    assert not has_not & server.keys()
    assert len(server["adminPass"]) == 12


def test_who_may(api: ComputeApi) -> None:
    assert rebuild(api, auth.READER).status_code == 403
    assert rebuild(api, auth.OTHER).status_code == 404


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"imageRef": GONE}, "Cannot find image for rebuild"),
        (
            {"imageRef": ids.named("image", "queued")},
            f"Image {ids.named('image', 'queued')} is not active.",
        ),
        (
            {"imageRef": ids.named("image", "off")},
            f"Image {ids.named('image', 'off')} is not active.",
        ),
        ({"imageRef": LARGE}, "Flavor's disk is smaller than the minimum size"),
        (
            {"imageRef": ids.named("image", "hungry")},
            "Flavor's memory is too small for requested image.",
        ),
        (
            {"imageRef": ids.named("image", "volumes")},
            "has no data: it only lists snapshots of volumes.",
        ),
        (
            {"imageRef": ids.named("image", "shelved")},
            "has no data: it only lists a shelved server.",
        ),
        ({"key_name": "none"}, "Invalid key_name provided."),
        ({"preserve_ephemeral": True}, "preserve_ephemeral is not supported"),
        ({"trusted_image_certificates": ["a"]}, "Image certificates are not supported."),
    ],
)
def test_what_is_refused(api: ComputeApi, asked: dict[str, Any], words: str) -> None:
    refused = rebuild(api, **asked)
    assert (refused.status_code, words in text(refused)) == (400, True), text(refused)
    assert api.get(SERVER).json["server"]["status"] == "ACTIVE"


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        ("2.1", {"imageRef": "x"}),
        ("2.1", {"imageRef": ""}),
        ("2.1", {"name": ""}),
        ("2.18", {"description": "x"}),
        ("2.53", {"key_name": "x"}),
        ("2.56", {"user_data": "eA=="}),
        ("2.57", {"personality": [FILE]}),
        ("2.57", {"user_data": "not base64"}),
        ("2.62", {"trusted_image_certificates": None}),
        ("2.89", {"hostname": "new"}),
        ("2.93", {"hostname": "new.example"}),
        ("2.104", {"flavorRef": "1"}),
        ("2.1", {"personality": [{"path": "/a", "mode": "0600"}]}),
    ],
)
def test_bodies_by_version(api: ComputeApi, version: str, asked: dict[str, Any]) -> None:
    assert rebuild(api, version=version, **asked).status_code == 400


def test_the_image_is_required(api: ComputeApi) -> None:
    answer = api.request("POST", f"{SERVER}/action", {"rebuild": {}})
    assert answer.status_code == 400


def test_quotas(api: ComputeApi) -> None:
    meta = {f"k{number}": "v" for number in range(129)}
    refused = rebuild(api, metadata=meta)
    assert refused.status_code == 403
    assert "Maximum number of metadata items exceeds 128" in text(refused)
    refused = rebuild(api, version="2.56", personality=[FILE] * 6)
    assert (refused.status_code, text(refused)) == (403, "Personality file limit exceeded")


@pytest.mark.parametrize("vm_state", ["paused", "suspended", "resized", "building"])
def test_states(make_server: Any, vm_state: str) -> None:
    refused = rebuild(make_server(vm_state=vm_state), imageRef=GONE)
    assert refused.status_code == 409
    assert text(refused) == (
        f"Cannot 'rebuild' instance {UUID} while it is in vm_state {vm_state}"
    )


def test_a_locked_server(make_server: Any) -> None:
    api = make_server(locked_by="admin", vm_state="paused")
    refused = rebuild(api, imageRef=GONE)
    assert (refused.status_code, text(refused)) == (409, f"Instance {UUID} is locked")

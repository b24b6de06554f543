"""Rescue and unrescue: who may, with which bodies, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import an_image
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

UUID = uuid_of(1)
SERVER = f"/servers/{UUID}"
GONE, QUEUED, SHELVED = (ids.named("image", name) for name in ("gone", "queued", "shelved"))


@pytest.fixture
def make_server(make: MakeApi) -> Any:
    def made(**changes: Any) -> ComputeApi:
        a_parked = an_image("shelved", server_uuid=uuid_of(2), locations={})
        return make(a_full_server(1, **changes), an_image("queued", status="queued"), a_parked)

    return made


@pytest.fixture
def api(make_server: Any) -> ComputeApi:
    made: ComputeApi = make_server()
    return made


def act(api: ComputeApi, body: Any, token: str = auth.MEMBER) -> Any:
    return api.request("POST", f"{SERVER}/action", body, token=token, version="2.104")


def text(answer: Any) -> str:
    [fault] = answer.json.values()
    return str(fault["message"])


@pytest.mark.parametrize("asked", [None, {}, {"adminPass": "secret"}])
def test_a_rescue_is_accepted(api: ComputeApi, asked: Any) -> None:
    answer = act(api, {"rescue": asked})
    assert answer.status_code == 200
    [(name, password)] = answer.json.items()
    assert name == "adminPass"
    assert password == "secret" if asked else len(password) == 12
    shown = api.get(SERVER).json["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ACTIVE", "rescuing")
    again = act(api, {"rescue": None})
    assert again.status_code == 409
    assert text(again) == (f"Cannot 'rescue' instance {UUID} while it is in task_state rescuing")


def test_unrescue(make_server: Any) -> None:
    api = make_server(vm_state="rescued")
    assert api.get(SERVER).json["server"]["status"] == "RESCUE"
    [listed] = api.get("/servers?status=RESCUE").json["servers"]
    assert listed["id"] == UUID
    assert act(api, {"unrescue": None}).status_code == 202


def test_who_may(api: ComputeApi) -> None:
    for body in ({"rescue": None}, {"unrescue": None}):
        assert act(api, body, auth.READER).status_code == 403
        assert act(api, body, auth.OTHER).status_code == 404


@pytest.mark.parametrize("image_id", [GONE, QUEUED, SHELVED])
def test_images_that_can_t_be(api: ComputeApi, image_id: str) -> None:
    refused = act(api, {"rescue": {"rescue_image_ref": image_id}})
    words = f"Requested rescue image '{image_id}' is not supported"
    assert (refused.status_code, text(refused)) == (400, words)


@pytest.mark.parametrize(
    ("disk_format", "device", "bus", "words"),
    [
        ("iso", None, None, ""),
        ("iso", "cdrom", "ide", ""),
        ("qcow2", "disk", "virtio", ""),
        ("iso", "disk", None, "Requested rescue device 'disk' is not supported"),
        ("iso", "cdrom", "usb", "Requested rescue bus 'usb' is not supported"),
        ("qcow2", "cdrom", None, "Requested rescue device 'cdrom' is not supported"),
    ],
)
def test_what_an_image_says_of_rescues(
    make: MakeApi, disk_format: str, device: str | None, bus: str | None, words: str
) -> None:
    asked = {"hw_rescue_device": device, "hw_rescue_bus": bus}
    properties = {name: value for name, value in asked.items() if value}
    image = an_image("tool", disk_format=disk_format, properties=properties)
    answer = act(
        make(a_full_server(1), image),
        {"rescue": {"rescue_image_ref": ids.named("image", "tool")}},
    )
    assert answer.status_code == (400 if words else 200)
    assert not words or text(answer) == words


def test_a_server_without_an_image(make_server: Any) -> None:
    refused = act(make_server(image_id=None), {"rescue": None})
    assert refused.status_code == 400
    assert text(refused).startswith(f"Instance {UUID} cannot be rescued: ")


@pytest.mark.parametrize(
    "body",
    [
        {"rescue": "x"},
        {"rescue": {"rescue_image_ref": "x"}},
        {"rescue": {"adminPass": 1}},
        {"rescue": {"image": GONE}},
        {"rescue": None, "unrescue": None},
    ],
)
def test_malformed_bodies(api: ComputeApi, body: Any) -> None:
    assert act(api, body).status_code == 400


@pytest.mark.parametrize(
    ("action", "vm_state"),
    [("rescue", "paused"), ("rescue", "rescued"), ("unrescue", "active"), ("rescue", "resized")],
)
def test_states(make_server: Any, action: str, vm_state: str) -> None:
    refused = act(make_server(vm_state=vm_state), {action: None})
    words = f"Cannot '{action}' instance {UUID} while it is in vm_state {vm_state}"
    assert (refused.status_code, text(refused)) == (409, words)


def test_a_locked_server(make_server: Any) -> None:
    refused = act(make_server(locked_by="admin"), {"rescue": None})
    assert (refused.status_code, text(refused)) == (409, f"Instance {UUID} is locked")

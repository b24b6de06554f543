"""Shelve, offload and unshelve: who may, with which bodies, and which words refuse it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_service, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"


def act(api: ComputeApi, body: Any, token: str = auth.MEMBER, version: str = "2.104") -> Any:
    return api.request("POST", f"{SERVER}/action", body, token=token, version=version)


def text(answer: Any) -> str:
    [fault] = answer.json.values()
    return str(fault["message"])


@pytest.mark.parametrize("state", ["active", "stopped", "paused", "suspended"])
def test_shelve(make: MakeApi, state: str) -> None:
    api = make(a_full_server(1, vm_state=state))
    assert act(api, {"shelve": None}).status_code == 202
    assert api.conductor.asked[-1] == ("act", (uuid_of(1), "shelve"))


@pytest.mark.parametrize(
    ("state", "action"),
    [
        ("error", "shelve"),
        ("shelved_offloaded", "shelve"),
        ("active", "unshelve"),
        ("active", "shelveOffload"),
        ("shelved_offloaded", "shelveOffload"),
    ],
)
def test_the_state_decides(make: MakeApi, state: str, action: str) -> None:
    answer = act(make(a_full_server(1, vm_state=state)), {action: None}, auth.ADMIN)
    assert (answer.status_code, text(answer)) == (
        409,
        f"Cannot '{action}' instance {uuid_of(1)} while it is in vm_state {state}",
    )


def test_who_may(make: MakeApi) -> None:
    api = make(a_full_server(1, vm_state="shelved"))
    assert act(api, {"shelve": None}, auth.READER).status_code == 403
    assert act(api, {"shelveOffload": None}).status_code == 403
    assert act(api, {"unshelve": None}, auth.READER).status_code == 403
    assert act(api, {"unshelve": None}, auth.OTHER).status_code == 404
    assert act(api, {"shelveOffload": None}, auth.ADMIN).status_code == 202


def test_one_that_is_parked_shows_no_host(make: MakeApi) -> None:
    api = make(a_full_server(1, vm_state="shelved_offloaded"))
    server = api.get(SERVER, token=auth.ADMIN, version="2.104").json["server"]
    assert (server["status"], server["hostId"]) == ("SHELVED_OFFLOADED", "")
    assert server["OS-EXT-SRV-ATTR:host"] is None
    assert server["OS-EXT-SRV-ATTR:hypervisor_hostname"] is None


@pytest.mark.parametrize(
    ("version", "body", "status"),
    [
        ("2.76", None, 202),
        ("2.77", {"availability_zone": "az1"}, 202),
        ("2.77", {}, 400),
        ("2.77", {"availability_zone": None}, 400),
        ("2.77", {"availability_zone": "az1", "host": "pve1"}, 400),
        ("2.77", {"availability_zone": "moon"}, 400),
        ("2.91", {"availability_zone": None}, 202),
        ("2.91", {}, 400),
        ("2.91", {"host": "pve1"}, 202),
        ("2.91", {"host": "pve9"}, 400),
        ("2.91", {"host": "pve2"}, 202),
        ("2.91", {"host": "far"}, 409),
        ("2.91", {"availability_zone": None, "host": "far"}, 202),
        ("2.91", {"availability_zone": "az2", "host": "far"}, 202),
        ("2.91", {"availability_zone": "az1", "host": "far"}, 409),
        ("2.91", {"availability_zone": "az1", "host": "pve1"}, 202),
        ("2.91", {"availability_zone": "moon", "host": "pve1"}, 400),
    ],
)
def test_where_to(make: MakeApi, version: str, body: Any, status: int) -> None:
    api = make(
        a_full_server(1, vm_state="shelved_offloaded", pinned_availability_zone="az1"),
        a_service("pve2"),
        a_service("far", availability_zone="az2"),
    )
    answer = act(api, {"unshelve": body}, auth.ADMIN, version)
    assert answer.status_code == status, answer.text
    if status == 202:
        named = body is not None and "availability_zone" in body
        asked = {"pinned_availability_zone": body["availability_zone"]} if named else {}
        if body is not None and "host" in body:
            asked["host"] = body["host"]
        assert api.conductor.asked[-1] == ("act", (uuid_of(1), "unshelve", asked))


def test_a_place_is_only_for_one_that_is_offloaded(make: MakeApi) -> None:
    api = make(a_full_server(1, vm_state="shelved"))
    answer = act(api, {"unshelve": {"availability_zone": "az1"}})
    assert answer.status_code == 409
    assert "The server status must be SHELVED_OFFLOADED." in text(answer)
    assert act(api, {"unshelve": {"host": "pve1"}}).status_code == 403
    assert act(api, {"unshelve": None}).status_code == 202

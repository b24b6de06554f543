"""Adoptions and the actions beside Nova's over HTTP."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common import clock
from common.errors import Conflict
from conductor.rpc.servers.manage import Adoption
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_host, a_service, uuid_of
from tests.fixtures.listings import NOW, Row
from tests.functional.api_compute.conftest import MakeApi

ASKED: dict[str, Any] = {"cluster": "c1", "vmid": 500, "project_id": "demo"}


def adopt(api: ComputeApi, token: str = auth.ADMIN, **changes: Any) -> Any:
    return api.request("POST", "/adoptions", {"adoption": ASKED | changes}, token=token)


def act(api: ComputeApi, action: str, token: str = auth.ADMIN, inside: Any = None) -> Any:
    return api.request("POST", f"/servers/{uuid_of(1)}/action", {action: inside}, token=token)


def test_an_adoption_is_accepted(api: ComputeApi) -> None:
    answer = adopt(api, vmid="500", name="db", user_id="u7", flavor="m1.small")
    assert answer.status_code == 202
    assert answer.json == {"adoption": {"server_id": uuid_of(500)}}
    asked = api.conductor.asked[-1][1]
    assert isinstance(asked, Adoption)
    assert (asked.vmid, asked.name, asked.user_id, asked.project_id) == (500, "db", "u7", "demo")
    assert asked.flavor is not None
    assert asked.flavor.memory_mib == 2048
    plain = adopt(api)
    assert plain.status_code == 202
    assert api.conductor.asked[-1][1].flavor is None
    assert api.conductor.asked[-1][1].user_id == "admin"


def test_only_administrators_adopt_release_and_forget(make: MakeApi) -> None:
    api = make(a_full_server(1))
    assert adopt(api, token=auth.MEMBER).status_code == 403
    for action in ("release", "forget"):
        assert act(api, action, auth.MEMBER).status_code == 403
    assert api.conductor.asked == []
    assert act(api, "release").status_code == 202
    assert act(api, "forget", inside={"reason": "burnt", "force": True}).status_code == 202
    assert [what for _, what in api.conductor.asked] == [
        (uuid_of(1), "release"),
        (uuid_of(1), "burnt", True),
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"vmid": 1}, {"vmid": "x"}, {"cluster": ""}, {"flavor": "none"}, {"project_id": "../x"}],
)
def test_what_is_wrong_is_refused(api: ComputeApi, wrong: dict[str, Any]) -> None:
    assert adopt(api, **wrong).status_code == 400
    assert api.conductor.asked == []


def test_the_reason_of_a_refusal_is_reported(api: ComputeApi) -> None:
    api.conductor.fail = Conflict("VM 500 of cluster c1 is a template.")
    answer = adopt(api)
    assert answer.status_code == 409
    assert answer.json["conflictingRequest"]["message"] == "VM 500 of cluster c1 is a template."


def test_owners_hold_and_release_the_hold(make: MakeApi) -> None:
    operation: Row = (
        schema.operations,
        {
            "resource_type": "server",
            "resource_id": uuid_of(1),
            "project_id": "demo",
            "user_id": "demo",
            "request_id": "req-1",
            "action": "delete",
            "state": "running",
            "context": {},
            "params": {},
            "plan": {},
            "started_at": NOW,
            "updated_at": clock.utcnow(),
        },
    )
    api = make(a_full_server(1), operation)
    path = f"/explanations/{uuid_of(1)}"
    assert not api.get(path).json["explanation"]["operations"][0]["held"]
    assert act(api, "hold", auth.READER).status_code == 403
    assert act(api, "hold", auth.MEMBER).status_code == 202
    assert api.get(path).json["explanation"]["operations"][0]["held"]
    assert act(api, "release-hold", auth.MEMBER, {}).status_code == 202
    assert not api.get(path).json["explanation"]["operations"][0]["held"]
    assert act(api, "hold", auth.OTHER).status_code == 404
    assert act(api, "hold", inside={"x": 1}).status_code == 400


def test_administrators_have_tried_again_what_waits(make: MakeApi) -> None:
    later = clock.utcnow() + datetime.timedelta(seconds=300)
    operation: Row = (
        schema.operations,
        {
            "resource_type": "server",
            "resource_id": uuid_of(1),
            "project_id": "demo",
            "user_id": "demo",
            "request_id": "req-1",
            "action": "delete",
            "state": "running",
            "context": {},
            "params": {},
            "plan": {},
            "started_at": NOW,
            "updated_at": clock.utcnow(),
            "not_before": later,
        },
    )
    api = make(a_full_server(1), operation)
    path = f"/explanations/{uuid_of(1)}"
    [explained] = api.get(path, token=auth.ADMIN).json["explanation"]["operations"]
    assert explained["waits_until"] == clock.iso_microseconds(later)
    assert explained["retry"] == f"micronova server retry {uuid_of(1)}"
    [explained] = api.get(path).json["explanation"]["operations"]
    assert (explained["waits_until"] is None, "retry" in explained) == (False, False)
    assert act(api, "retry", auth.MEMBER).status_code == 403
    assert act(api, "retry", inside={"x": 1}).status_code == 400
    assert act(api, "retry").status_code == 202
    api.conductor.fail = Conflict("Nothing waits to be tried again.")
    assert act(api, "retry").status_code == 409


@pytest.mark.parametrize(
    ("facts", "status"), [({"online": False}, "UNKNOWN"), ({"online": True}, "UP"), ({}, "UP")]
)
def test_a_node_that_is_offline_shows(make: MakeApi, facts: dict[str, Any], status: str) -> None:
    api = make(a_full_server(1, host="pve2"), a_service("pve2"), a_host("pve2", facts=facts))
    shown = api.get(f"/servers/{uuid_of(1)}", version="2.16", token=auth.ADMIN)
    assert shown.json["server"]["host_status"] == status

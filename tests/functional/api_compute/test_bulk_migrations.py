"""`/bulk-migrations` and `/drains/{host}` over HTTP: begun, shown, steered, by administrators."""

from __future__ import annotations

from typing import Any

import pytest

from common import clock, codec
from common.resources.bulk_migrations import Move, MoveState, Steering
from conductor.plans import BulkPlan, Place
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, uuid_of
from tests.fixtures.listings import Row, counted
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

A, B = uuid_of(1), uuid_of(2)


def an_operation(number: int, host: str = "pve1", **changes: Any) -> Row:
    moves = (
        Move(A, "web", host, MoveState.MOVING, "live", operation_id=900, tries=1),
        Move(B, "db", host, MoveState.BLOCKED, reason="it is suspended: resume it"),
    )
    plan = BulkPlan(Place(host), moves=moves, at_once=2, steering=Steering.PAUSE)
    values = {
        "id": number,
        "resource_type": "host",
        "resource_id": host,
        "project_id": "admin",
        "user_id": "boss",
        "request_id": f"req-{number}",
        "action": "drain",
        "state": "queued",
        "attempt": 1,
        "context": {},
        "params": {},
        "plan": codec.loads(codec.dumps(plan)),
        "started_at": clock.utcnow(),
        "updated_at": clock.utcnow(),
    }
    return schema.operations, {**values, **changes}


def a_migration() -> Row:
    about = {"resource_type": "server", "resource_id": A}
    return an_operation(900, **about, action="live-migration", stage="move", plan={})


def post(api: ComputeApi, path: str, body: dict[str, Any]) -> Any:
    return api.request("POST", path, body, token=auth.ADMIN)


@pytest.mark.parametrize(
    ("asked", "begun"),
    [
        ({"drain": {"host": "pve1"}}, ("drain", ("pve1", 2, False))),
        (
            {"drain": {"host": "pve1", "at_once": 5, "live_only": True}},
            ("drain", ("pve1", 5, True)),
        ),
        (
            {"drain": {"host": "pve1", "wait_seconds": 600}},
            ("drain", ("pve1", 2, 600, False)),
        ),
        ({"rebalance": {}}, ("apply_rebalance", (10, 2))),
        ({"rebalance": {"limit": 3, "at_once": 1}}, ("apply_rebalance", (3, 1))),
    ],
)
def test_begun(make: MakeApi, asked: dict[str, Any], begun: tuple[Any, ...]) -> None:
    api = make()
    answer = post(api, "/bulk-migrations", {"bulk_migration": asked})
    assert (answer.status_code, answer.json) == (202, {"bulk_migration": {"id": 7}})
    assert api.conductor.asked == [begun]
    assert api.request("POST", "/bulk-migrations", {"bulk_migration": asked}).status_code == 403


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, "bulk_migration"),
        ({"drain": {"host": "pve1"}, "rebalance": {}}, "bulk_migration"),
        ({"drain": {}}, "host"),
        ({"drain": {"host": "pve1", "at_once": 0}}, "at_once"),
        ({"drain": {"host": "a/b"}}, "host"),
        ({"drain": {"host": "pve1", "wait_seconds": -1}}, "wait_seconds"),
        ({"drain": {"host": "pve1", "wait_seconds": "1h"}}, "wait_seconds"),
        ({"rebalance": {"limit": 101}}, "limit"),
        ({"rebalance": {"host": "pve1"}}, "host"),
        ({"evacuate": {}}, "evacuate"),
    ],
)
def test_bad_bodies_begin_nothing(make: MakeApi, asked: dict[str, Any], named: str) -> None:
    api = make()
    answer = post(api, "/bulk-migrations", {"bulk_migration": asked})
    assert answer.status_code == 400
    assert named in answer.json["badRequest"]["message"]
    assert api.conductor.asked == []


def test_shown_with_each_servers_stage(make: MakeApi) -> None:
    api = make(an_operation(7), a_migration())
    with counted(api.reader) as count:
        shown = api.get("/bulk-migrations/7", token=auth.ADMIN).json["bulk_migration"]
        assert count() <= 3
    assert (shown["action"], shown["host"], shown["state"]) == ("drain", "pve1", "queued")
    assert (shown["asked"], shown["at_once"], shown["servers"]) == ("pause", 2, 2)
    assert shown["message"] == "0 moved, 2 remain (1: moving; 1: it is suspended: resume it)."
    moving, blocked = shown["moves"]
    assert (moving["server"], moving["way"], moving["state"]) == (A, "live", "moving")
    assert (moving["stage"], moving["operation_id"]) == ("move", 900)
    assert (blocked["state"], blocked["reason"]) == ("blocked", "it is suspended: resume it")
    assert api.get("/bulk-migrations/7").status_code == 403


def test_listed_by_host_newest_first_in_one_query(make: MakeApi) -> None:
    api = make(*(an_operation(number, f"pve{number % 2}") for number in range(1, 9)))
    with counted(api.reader) as count:
        found = api.get("/bulk-migrations", token=auth.ADMIN).json["bulk_migrations"]
        several = count()
    assert [one["id"] for one in found] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert "moves" not in found[0]
    assert several <= 2
    found = api.get("/bulk-migrations?host=pve1&limit=2", token=auth.ADMIN).json
    assert [one["id"] for one in found["bulk_migrations"]] == [7, 5]
    assert api.get("/bulk-migrations").status_code == 403
    assert api.get("/bulk-migrations?more=1", token=auth.ADMIN).status_code == 400


@pytest.mark.parametrize(
    ("action", "steering"), [("pause", "pause"), ("resume", "go"), ("cancel", "cancel")]
)
def test_steered(make: MakeApi, action: str, steering: str) -> None:
    api = make()
    assert post(api, "/bulk-migrations/7/action", {action: None}).status_code == 202
    assert api.conductor.asked == [("set_bulk_migration_state", (7, steering))]
    assert post(api, "/bulk-migrations/7/action", {action: 1}).status_code == 400
    assert api.request("POST", "/bulk-migrations/7/action", {action: None}).status_code == 403


@pytest.mark.parametrize("number", ["8", "x", "99999999999999999999999", "-1"])
def test_unknown(make: MakeApi, number: str) -> None:
    api = make(a_migration())
    assert api.get(f"/bulk-migrations/{number}", token=auth.ADMIN).status_code == 404


def test_of_a_server_is_not_one(make: MakeApi) -> None:
    api = make(a_migration())
    assert api.get("/bulk-migrations/900", token=auth.ADMIN).status_code == 404


def test_what_a_drain_would_do(make: MakeApi) -> None:
    api = make()
    plan = api.get("/drains/pve1", token=auth.ADMIN).json["drain"]
    assert plan == {
        "host": "pve1",
        "servers": [
            {"server": A, "name": "web", "way": "live", "target": "pve2", "reason": None},
            {"server": B, "name": "db", "way": None, "target": None, "reason": "it is held"},
        ],
    }
    api.get("/drains/pve1?live_only=true", token=auth.ADMIN)
    assert [one[1][1] for one in api.conductor.asked] == [False, True]
    assert api.get("/drains/pve1").status_code == 403
    assert api.get("/drains/pve1?live_only=perhaps", token=auth.ADMIN).status_code == 400

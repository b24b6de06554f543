"""How a request came and what let it through: the first steps of what it began."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.errors import QuotaExceeded
from db import schema
from tests.functional.conductor.harness import World


def ask(world: World, method: str, path: str, status: int, ago: float = 0.5) -> None:
    """What the next request was over HTTP."""
    at = clock.after(-ago).isoformat()
    world.ctxt.asked = {"method": method, "path": path, "at": at, "status": status}


def steps(world: World, operation_id: int) -> list[Any]:
    table = schema.operation_events
    query = sa.select(table).where(table.c.operation_id == operation_id)
    with world.conductor.store.read() as connection:
        return list(connection.execute(query.order_by(table.c.started_at, table.c.sequence)))


def test_a_create_begins_with_the_api_and_the_quota(world: World) -> None:
    ask(world, "POST", "/v2.1/servers", 202)
    world.create(min_count=2, max_count=2)
    world.compute.wait_for(2)
    for operation in world.rows(schema.operations):
        api, quota = steps(world, operation.id)[:2]
        assert (api.name, api.result, api.host) == ("api_request", "Success", None)
        assert api.detail == {
            "method": "POST",
            "path": "/v2.1/servers",
            "status": 202,
            "user": "u",
            "project": "p",
        }
        assert api.finished_at - api.started_at >= datetime.timedelta(seconds=0.5)
        assert (quota.name, quota.result) == ("conductor_take_quota", "Success")
        assert quota.detail["instances"] == {"limit": 10, "used": 0, "asked": 2}
        assert set(quota.detail) == {"instances", "cores", "ram"}
        # It isn't repeated in every message of the operation.
        assert operation.context["asked"] is None


def test_an_action_begins_with_the_api(world: World) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    ask(world, "DELETE", f"/v2.1/servers/{uuid}", 204, ago=-60.0)
    world.act(uuid, "delete")
    [_, delete] = world.rows(schema.operations)
    api = steps(world, delete.id)[0]
    assert (api.name, api.detail["status"]) == ("api_request", 204)
    assert api.started_at <= api.finished_at  # though the API's clock is a minute ahead


def test_what_nobody_asked_over_http_has_no_such_step(world: World) -> None:
    world.create()
    world.compute.wait_for(1)
    assert steps(world, 1)[0].name == "conductor_take_quota"


def test_a_refusal_has_its_numbers(world: World) -> None:
    with pytest.raises(QuotaExceeded) as refused:
        world.create(min_count=11, max_count=11)
    assert refused.value.details == {
        "resource": ["instances"],
        "limit": [10],
        "used": [0],
        "requested": [11],
    }
    assert world.rows(schema.operation_events) == []


def test_a_claim_shows_how_often_its_transaction_was_run_again(world: World) -> None:
    """Another conductor wrote first, twice."""
    lost = [2]

    def lose(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "INSERT INTO decisions" in statement and lost[0]:
            lost[0] -= 1
            raise sa.exc.IntegrityError(statement, {}, ValueError("there is one"))

    sa.event.listen(sa.Engine, "before_cursor_execute", lose)
    try:
        world.scheduler.claims = ({"host": "pve1", "result": "claimed"},)
        world.create()
        world.compute.wait_for(1)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", lose)
    [decision] = world.rows(schema.decisions)
    assert decision.body["claims"] == [{"host": "pve1", "result": "claimed", "commit_retries": 2}]

"""`/metrics`: what is counted moves with the rows; for administrators."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common import clock
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import NOW, ComputeApi, a_full_server, a_service
from tests.fixtures.listings import Row, counted
from tests.functional.api_compute.conftest import MakeApi
from tests.functional.api_compute.test_audits import a_finding, an_audit

pytestmark = pytest.mark.database


def a_vmid(number: int, state: str) -> Row:
    return schema.vmids, {"cluster": "sim1", "vmid": number, "state": state, "since": NOW}


def an_operation(number: int, state: str, minutes: int, **changes: Any) -> Row:
    began = NOW + datetime.timedelta(minutes=minutes)
    return schema.operations, {
        "id": number,
        "resource_type": "server",
        "resource_id": "u",
        "project_id": "demo",
        "user_id": "demo",
        "request_id": f"req-{number}",
        "action": "create",
        "state": state,
        "context": {},
        "params": {},
        "plan": {},
        "started_at": began,
        "updated_at": began,
        **changes,
    }


def metrics(api: ComputeApi) -> dict[str, Any]:
    answer = api.get("/metrics", token=auth.ADMIN)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json["metrics"]
    return found


def by(rows: list[dict[str, Any]]) -> dict[tuple[str, ...], int]:
    return {tuple(str(v) for k, v in row.items() if k != "count"): row["count"] for row in rows}


def test_everything_is_counted(make: MakeApi) -> None:
    audit, values = an_audit(1)
    api = make(
        a_full_server(1),
        a_full_server(2, project="other", held=True),
        a_full_server(3, vm_state="error"),
        a_full_server(4, deleted_at=NOW),
        an_operation(1, "running", 5, lease_owner="c1", lease_expires_at=clock.after(60)),
        an_operation(2, "queued", 3),
        an_operation(3, "done", 1),
        an_operation(4, "running", 6),
        an_operation(5, "running", 6, lease_owner="c2", lease_expires_at=clock.after(-1)),
        a_finding(1),
        a_finding(2),
        a_finding(3, "lock_stuck", severity="damage"),
        a_finding(4, healed_at=NOW),
        a_vmid(100, "reserved"),
        a_vmid(101, "quarantined"),
        a_service("pve8", last_seen_at=clock.utcnow()),
        a_service("pve9", last_seen_at=clock.utcnow(), forced_down=True),
        a_service("never", "nova-conductor", last_seen_at=None),
        (audit, values | {"started_at": NOW, "finished_at": NOW}),
        an_audit(2, "failed"),
    )
    found = metrics(api)
    assert by(found["servers"]) == {("active",): 2, ("error",): 1}
    assert found["held_servers"] == 1
    assert by(found["operations"]) == {("running",): 1, ("queued",): 3}
    assert found["oldest_operation_at"] == clock.iso(NOW + datetime.timedelta(minutes=3))
    assert by(found["findings"]) == {("vm_foreign", "notice"): 2, ("lock_stuck", "damage"): 1}
    assert by(found["vmids"]) == {("sim1", "reserved"): 1, ("sim1", "quarantined"): 1}
    services = by(found["services"])
    assert services["nova-conductor", "down"] == 1
    assert services["nova-compute", "up"] >= 1
    assert services["nova-compute", "down"] >= 1
    assert found["audit"] == {"started_at": clock.iso(NOW), "finished_at": clock.iso(NOW)}


def test_an_empty_cloud_has_numbers(api: ComputeApi) -> None:
    found = metrics(api)
    assert found["servers"] == found["operations"] == found["findings"] == found["vmids"] == []
    assert found["oldest_operation_at"] is None
    assert found["audit"] == {"started_at": None, "finished_at": None}


def test_the_statements_are_few_whatever_there_is(make: MakeApi) -> None:
    api = make(*(a_full_server(number) for number in range(1, 30)))
    with counted(api.reader) as statements:
        metrics(api)
        assert statements() == 8


def test_only_for_administrators(api: ComputeApi) -> None:
    assert api.get("/metrics").status_code == 403

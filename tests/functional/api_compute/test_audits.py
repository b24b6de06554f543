"""Audits and findings: for administrators, as rows; what the conductor is asked."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import Conflict
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import NOW, ComputeApi
from tests.fixtures.listings import Row
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

REPORT = {"clean": False, "complete": True, "open": {"vm_foreign": 1}}


def an_audit(number: int, state: str = "done") -> Row:
    values = {"id": number, "request_id": "req-1", "state": state, "conductor": "c1"}
    return schema.audits, {**values, "requested_at": NOW, "report": REPORT}


def a_finding(number: int, kind: str = "vm_foreign", **changes: Any) -> Row:
    values = {
        "id": number,
        "kind": kind,
        "subject": f"sim1/{number}",
        "severity": "notice",
        "cause": "It is not ours.",
        "cluster": "sim1",
        "evidence": {"status": "stopped"},
        "first_seen_at": NOW,
        "last_seen_at": NOW,
        "heals": 0,
    }
    return schema.findings, values | changes


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(
        an_audit(1),
        an_audit(2, "running"),
        a_finding(1),
        a_finding(2, "lock_stuck"),
        a_finding(3, healed_at=NOW, healed_by="destroy"),
    )


def get(api: ComputeApi, path: str) -> Any:
    return api.get(path, token=auth.ADMIN)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/audits"),
        ("GET", "/audits/1"),
        ("POST", "/audits"),
        ("GET", "/audit/findings"),
        ("GET", "/audit/findings/1"),
        ("POST", "/audit/findings/1/action"),
    ],
)
def test_only_for_administrators(api: ComputeApi, method: str, path: str) -> None:
    body = {"heal": None} if path.endswith("action") else None
    assert api.request(method, path, body).status_code == 403
    assert api.conductor.asked == []


def test_audits(api: ComputeApi) -> None:
    listed = get(api, "/audits").json["audits"]
    assert [(one["id"], one["state"]) for one in listed] == [(2, "running"), (1, "done")]
    assert [one["id"] for one in get(api, "/audits?limit=1").json["audits"]] == [2]
    audit = get(api, "/audits/1").json["audit"]
    assert audit["report"] == REPORT
    assert audit["finished_at"] is None
    for unknown in ("9", "x", "-1", "9" * 30):
        assert get(api, f"/audits/{unknown}").status_code == 404
    assert get(api, "/audits?limit=x").status_code == 400


def test_one_is_begun(api: ComputeApi) -> None:
    answer = api.request("POST", "/audits", token=auth.ADMIN)
    assert (answer.status_code, answer.json) == (202, {"audit": {"id": 7}})
    assert api.conductor.asked == [("begin_audit", None)]


def test_findings(api: ComputeApi) -> None:
    def ids(query: str = "") -> list[int]:
        return [one["id"] for one in get(api, f"/audit/findings{query}").json["findings"]]

    assert ids() == [1, 2]
    assert ids("?kind=lock_stuck") == [2]
    assert ids("?healed=true") == [3]
    assert ids("?limit=1") == [1]
    assert get(api, "/audit/findings?what=1").status_code == 400
    finding = get(api, "/audit/findings/3").json["finding"]
    assert (finding["healed_by"], finding["evidence"]) == ("destroy", {"status": "stopped"})
    assert finding["first_seen_at"].endswith("Z")
    assert get(api, "/audit/findings/9").status_code == 404


@pytest.mark.parametrize(
    ("body", "force"),
    [({"heal": None}, False), ({"heal": {}}, False), ({"heal": {"force": True}}, True)],
)
def test_one_is_healed(api: ComputeApi, body: Any, force: bool) -> None:
    answer = api.request("POST", "/audit/findings/1/action", body, token=auth.ADMIN)
    assert answer.status_code == 202
    assert answer.json["heal"]["operation_id"] == 3
    assert api.conductor.asked == [("heal_finding", (1, force))]


@pytest.mark.parametrize("body", [{"heal": {"force": "yes"}}, {"heal": {"more": 1}}, {"x": 1}, {}])
def test_what_is_not_understood_is_refused(api: ComputeApi, body: Any) -> None:
    answer = api.request("POST", "/audit/findings/1/action", body, token=auth.ADMIN)
    assert answer.status_code == 400
    assert api.conductor.asked == []


def test_what_the_conductor_refuses(api: ComputeApi) -> None:
    api.conductor.fail = Conflict("Nothing proves that it is this cloud's.")
    path = "/audit/findings/1/action"
    answer = api.request("POST", path, {"heal": {"force": True}}, token=auth.ADMIN)
    assert answer.status_code == 409

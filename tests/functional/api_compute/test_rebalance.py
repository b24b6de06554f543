"""`/rebalance` over HTTP: a plan for administrators."""

from __future__ import annotations

import pytest

from tests.fixtures import auth
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database


def test_a_plan_is_bounded_and_for_administrators(make: MakeApi) -> None:
    api = make()
    plan = api.get("/rebalance", token=auth.ADMIN).json["rebalance"]
    assert (plan["score_before"], plan["score_after"], plan["considered"]) == (1.0, 0.5, 7)
    assert plan["moves"] == [
        {
            "server": "uuid-1",
            "name": "web",
            "source": "pve1",
            "target": "pve2",
            "memory_mib": 2048,
            "disk_gib": 20,
            "gain": 0.5,
        }
    ]
    api.get("/rebalance?limit=1000", token=auth.ADMIN)
    api.get("/rebalance?limit=0", token=auth.ADMIN)
    assert api.conductor.asked == [("rebalance", limit) for limit in (10, 100, 0)]
    assert api.get("/rebalance").status_code == 403
    assert api.get("/rebalance?limit=-1", token=auth.ADMIN).status_code == 400
    assert api.get("/rebalance?apply=1", token=auth.ADMIN).status_code == 400

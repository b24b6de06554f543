"""What would happen: `/rebalance` for administrators, `/schedule/fit` for members."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.messages.scheduling import Decision
from tests.fixtures import auth
from tests.fixtures.compute import IMAGE, ComputeApi
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


def fit(api: ComputeApi, status: int = 200, **more: Any) -> Any:
    token, hints = more.pop("token", auth.MEMBER), more.pop("hints", {})
    server = {
        "name": "web",
        "flavorRef": "m1.small",
        "imageRef": IMAGE,
        "networks": "none",
        **more,
    }
    body = {"server": server, **({"os:scheduler_hints": hints} if hints else {})}
    answer = api.request("POST", "/schedule/fit", body, version="2.64", token=token)
    assert answer.status_code == status, answer.text
    return answer.json["fit"] if status == 200 else answer.json


def test_members_read_whether_servers_would_fit_and_nothing_of_hosts(make: MakeApi) -> None:
    api = make()
    placed = Decision("s", "pve2", "uuid-pve2", considered=3)
    full = Decision("s", None, considered=3, counts={"resources": 3}, reason="pve1: 12 MiB free")
    other = Decision("s", None, considered=3, counts={"storage_room": 1, "image": 2})
    for decisions, expected in (
        ([placed], (True, False, [])),
        ([placed, full], (False, True, ["resources"])),
        ([other], (False, False, ["image", "storage_room"])),
        ([Decision("s", None)], (False, False, [])),
    ):
        api.conductor.scheduler.preview.return_value = decisions
        found = fit(api)
        assert set(found) == {"fits", "servers", "lacks_room", "refused_by"}
        assert (found["fits"], found["lacks_room"], found["refused_by"]) == expected
        assert "pve" not in str(found)
    assert fit(api, min_count=5, max_count=7)["servers"] == 7
    assert fit(api, min_count=1, max_count=5000)["servers"] == 100
    [_, each, without] = api.conductor.scheduler.preview.call_args[0]
    assert (len(each), without) == (100, ())
    assert {one.project_id for one in each} == {"demo"}


def test_who_may_not_create_may_not_ask_whether_it_fits(make: MakeApi) -> None:
    api = make()
    api.conductor.scheduler.preview.return_value = [Decision("s", "pve2", "uuid-pve2")]
    fit(api, 403, token=auth.READER)
    fit(api, 403, availability_zone="nova:pve1")
    fit(api, 400, flavorRef="nothing")
    fit(api, 400, name="")
    answer = api.request("POST", "/schedule/fit?without=pve1", {}, token=auth.MEMBER)
    assert answer.status_code == 400
    assert api.conductor.scheduler.preview.call_args is None


def test_nothing_of_other_projects_is_asked_about(make: MakeApi) -> None:
    api = make()
    api.conductor.scheduler.preview.return_value = [Decision("s", "pve2", "uuid-pve2")]
    group = {"server_group": {"name": "g", "policy": "anti-affinity"}}
    other = auth.token("other", "other", "member", "reader")
    made = api.request("POST", "/os-server-groups", group, version="2.64", token=other).json
    theirs = made["server_group"]["id"]
    said = fit(api, 400, hints={"group": theirs})
    assert "could not be found" in str(said)
    said = fit(api, 400, hints={"group": ids.new_uuid()})
    assert "could not be found" in str(said)
    assert api.conductor.scheduler.preview.call_args is None
    assert fit(api, hints={"group": theirs}, token=other)["fits"] is True

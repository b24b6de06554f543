"""`/operations`: who did what, in all projects."""

from __future__ import annotations

import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from common import clock
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import a_network, counted
from tests.fixtures.volumes import a_volume, volume_id
from tests.functional.api_compute.conftest import MakeApi
from tests.functional.api_compute.test_ledger import an_operation

pytestmark = pytest.mark.database

NAMES = {"user_name": "ann", "project_name": "Shop", "remote_address": "192.0.2.7"}


def request_of(number: int) -> str:
    return f"req-{uuid_of(number)}"


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    leased = {"lease_owner": "one", "lease_expires_at": clock.after(600)}
    is_open: dict[str, Any] = {"finished_at": None}
    return make(
        a_full_server(1, name="web-1"),
        an_operation(1, request_of(1), context=NAMES),
        an_operation(2, request_of(2), project_id="other", user_id="eve", state="failed"),
        an_operation(3, request_of(3), state="running", **leased, **is_open),
        an_operation(4, request_of(4), state="running", **is_open, not_before=clock.after(60)),
        an_operation(
            5, request_of(5), resource_type="volume", resource_id=uuid_of(7), user_id="eve"
        ),
    )


def listed(api: ComputeApi, query: str = "") -> list[int]:
    """Return the IDs of the operations of all pages."""
    found: list[int] = []
    path = f"/operations{query}"
    while path:
        answer = api.get(path, token=auth.ADMIN)
        assert answer.status_code == 200, answer.text
        found += [one["id"] for one in answer.json["operations"]]
        links = answer.json.get("operations_links", ())
        path = next((f"/operations?{urlsplit(one['href']).query}" for one in links), "")
    return found


def test_operators_see_who_did_what(api: ComputeApi) -> None:
    found = api.get("/operations", token=auth.ADMIN).json["operations"]
    assert [one["id"] for one in found] == [5, 4, 3, 2, 1]
    assert found[-1] == {
        **{"id": 1, "request_id": request_of(1), "global_request_id": None},
        **{"action": "create", "state": "done", "attempt": 1, "message": None},
        **{"resource_type": "server", "resource_id": uuid_of(1), "resource_name": "web-1"},
        **{"project_id": "demo", "project_name": "Shop"},
        **{"user_id": "demo", "user_name": "ann", "remote_address": "192.0.2.7"},
        "not_before": None,
        **{name: found[-1][name] for name in ("started_at", "updated_at", "finished_at")},
    }
    assert datetime.datetime.fromisoformat(found[-1]["started_at"])
    volume = found[0]
    assert (volume["resource_type"], volume["resource_name"], volume["user_name"]) == (
        *("volume", None),
        None,
    )


def test_what_has_a_name_is_named(make: MakeApi) -> None:
    network = a_network("vmbr0")
    unnamed, gone = volume_id(2), uuid_of(9)
    named = {
        ("volume", volume_id(1)): "data",
        ("volume", unnamed): None,
        ("backup", gone): None,
        ("network", network[1]["id"]): "vmbr0",
        ("host", "pve1"): None,
    }
    operations = [
        an_operation(number, request_of(number), resource_type=kind, resource_id=its_id)
        for number, (kind, its_id) in enumerate(named, 1)
    ]
    volumes = (a_volume(1, name="data"), a_volume(2, name=""))
    api = make(network, *volumes, *operations)
    found = api.get("/operations", token=auth.ADMIN).json["operations"]
    keys = ("resource_type", "resource_id")
    assert {tuple(one[key] for key in keys): one["resource_name"] for one in found} == named


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("?project_id=other", [2]),
        ("?user_id=eve", [5, 2]),
        ("?user_id=eve&project_id=demo", [5]),
        ("?user_id=nobody", []),
        ("?state=open&order=oldest", [3, 4]),
        # without a lease nobody works on it
        ("?state=queued", [4]),
        ("?state=running", [3]),
        ("?state=failed", [2]),
        ("?order=oldest&limit=2", [1, 2, 3, 4, 5]),
        ("?limit=2", [5, 4, 3, 2, 1]),
        ("?limit=1&user_id=eve", [5, 2]),
        ("?marker=99999999999999999999999", [5, 4, 3, 2, 1]),
    ],
)
def test_they_are_filtered_and_paged(api: ComputeApi, query: str, wanted: list[int]) -> None:
    assert listed(api, query) == wanted


def test_a_page_is_one_query(api: ComputeApi) -> None:
    with counted(api.reader) as count:
        listed(api, "?state=open&order=oldest")
        assert count() == 1


def test_nobody_else_sees_them(api: ComputeApi) -> None:
    for token in (auth.MEMBER, auth.READER):
        assert api.get("/operations", token=token).status_code == 403
    for odd in ("state=x", "order=x", "limit=x", "marker=x", "name=x", "marker=-1"):
        assert api.get(f"/operations?{odd}", token=auth.ADMIN).status_code == 400, odd

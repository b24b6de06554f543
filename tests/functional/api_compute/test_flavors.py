"""Flavors, their extra specs, and who may use them."""

from __future__ import annotations

import pytest

from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_flavor
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    """m1.small is public; ours is demo's, theirs nobody's, old disabled."""
    api = make(
        a_flavor("ours", is_public=False, swap_mib=512),
        a_flavor("theirs", is_public=False, memory_mib=8192),
        a_flavor("old", disabled=True),
        a_flavor("big", memory_mib=65_536, disk_gib=100, description="for much"),
    )
    with api.writer.begin() as connection:
        row = connection.execute(
            schema.flavors.select().where(schema.flavors.c.flavorid == "ours")
        ).one()
        connection.execute(
            schema.flavor_access.insert().values(flavor_id=row.id, project_id="demo")
        )
    return api


def names(api: ComputeApi, query: str = "", token: str = auth.MEMBER) -> list[str]:
    answer = api.get(f"/flavors?{query}", version="2.102", token=token)
    assert answer.status_code == 200, answer.text
    return [flavor["id"] for flavor in answer.json["flavors"]]


def test_who_sees_what(api: ComputeApi) -> None:
    assert names(api) == ["big", "m1.small", "ours"]
    assert names(api, token=auth.OTHER) == ["big", "m1.small"]
    assert names(api, token=auth.ADMIN) == ["big", "m1.small", "old"]
    assert names(api, "is_public=none", auth.ADMIN) == ["big", "m1.small", "old", "ours", "theirs"]
    assert names(api, "is_public=false", auth.ADMIN) == ["ours", "theirs"]
    assert names(api, "is_public=none") == ["big", "m1.small", "ours"]
    assert api.get("/flavors/ours").status_code == 200
    assert api.get("/flavors/theirs").status_code == 404
    assert api.get("/flavors/theirs", token=auth.ADMIN).status_code == 200


def test_filters_order_and_pages(api: ComputeApi) -> None:
    assert names(api, "minRam=4096") == ["big"]
    assert names(api, "minDisk=50") == ["big"]
    assert names(api, "name=big") == ["big"]
    assert names(api, "sort_key=memory_mb&sort_dir=desc") == ["big", "m1.small", "ours"]
    assert names(api, "sort_key=description") == ["m1.small", "ours", "big"]
    assert names(api, "limit=1&marker=big") == ["m1.small"]
    link = api.get("/flavors/detail?limit=1").json["flavors_links"][0]["href"]
    assert link.endswith("/v2.1/flavors/detail?limit=1&marker=big")
    for query in ("minRam=x", "marker=nope", "sort_key=nope"):
        assert api.get(f"/flavors?{query}").status_code == 400, query
    assert api.get("/flavors?is_public=x", token=auth.ADMIN).status_code == 400


def test_fields_by_version(api: ComputeApi) -> None:
    old = api.get("/flavors/m1.small", version="2.1").json["flavor"]
    assert old["swap"] == ""
    assert old["rxtx_factor"] == 1.0
    assert "description" not in old
    assert "extra_specs" not in old
    new = api.get("/flavors/m1.small", version="2.102").json["flavor"]
    assert new["swap"] == 0
    assert new["extra_specs"] == {"hw:cpu_policy": "shared"}
    assert "rxtx_factor" not in new
    assert api.get("/flavors/ours", version="2.1").json["flavor"]["swap"] == 512


def test_manage(api: ComputeApi) -> None:
    body = {"flavor": {"name": "new", "ram": "512", "vcpus": 1, "disk": 0, "id": 7}}
    assert api.request("POST", "/flavors", body).status_code == 403
    made = api.request("POST", "/flavors", body, token=auth.ADMIN)
    assert made.status_code == 200
    assert made.json["flavor"]["id"] == "7"
    assert api.request("POST", "/flavors", body, token=auth.ADMIN).status_code == 409
    change = {"flavor": {"description": "small"}}
    assert (
        api.request("PUT", "/flavors/7", change, version="2.54", token=auth.ADMIN).status_code
        == 404
    )
    changed = api.request("PUT", "/flavors/7", change, version="2.55", token=auth.ADMIN)
    assert changed.json["flavor"]["description"] == "small"
    assert api.request("DELETE", "/flavors/7", token=auth.ADMIN).status_code == 202
    assert api.request("DELETE", "/flavors/7", token=auth.ADMIN).status_code == 404
    made = api.request(
        "POST", "/flavors", {"flavor": {**body["flavor"], "id": None}}, token=auth.ADMIN
    )
    assert len(made.json["flavor"]["id"]) == 36


def test_extra_specs_that_cannot_be_understood_are_refused_since_2_86(api: ComputeApi) -> None:
    path = "/flavors/big/os-extra_specs"
    wrong = {"resources:VCPU": "-1"}
    for version, status in (("2.85", 200), ("2.86", 400)):
        added = api.request(
            "POST", path, {"extra_specs": wrong}, version=version, token=auth.ADMIN
        )
        assert added.status_code == status
        one = f"{path}/resources:VCPU"
        changed = api.request("PUT", one, wrong, version=version, token=auth.ADMIN)
        assert changed.status_code == status
    assert "resources:VCPU=-1 is less than 0" in changed.text


def test_extra_specs(api: ComputeApi) -> None:
    path = "/flavors/big/os-extra_specs"
    added = api.request("POST", path, {"extra_specs": {"a": "b", "n": 1}}, token=auth.ADMIN)
    assert added.json == {"extra_specs": {"a": "b", "n": 1}}
    assert api.get(path).json == {"extra_specs": {"a": "b", "n": "1"}}
    assert api.get(f"{path}/a").json == {"a": "b"}
    assert api.request("PUT", f"{path}/a", {"a": "c"}, token=auth.ADMIN).json == {"a": "c"}
    assert api.request("PUT", f"{path}/a", {"b": "c"}, token=auth.ADMIN).status_code == 400
    assert api.request("DELETE", f"{path}/a", token=auth.ADMIN).status_code == 200
    assert api.request("DELETE", f"{path}/a", token=auth.ADMIN).status_code == 404
    assert api.get(f"{path}/a").status_code == 404
    assert api.request("POST", path, {"extra_specs": {}}).status_code == 403


def test_access(api: ComputeApi) -> None:
    path, access = "/flavors/theirs/action", "/flavors/theirs/os-flavor-access"
    assert api.get(access, token=auth.ADMIN).json == {"flavor_access": []}
    body = {"addTenantAccess": {"tenant": "other"}}
    given = api.request("POST", path, body, token=auth.ADMIN)
    assert given.json == {"flavor_access": [{"flavor_id": "theirs", "tenant_id": "other"}]}
    assert names(api, token=auth.OTHER) == ["big", "m1.small", "theirs"]
    assert api.request("POST", path, body, token=auth.ADMIN).status_code == 409
    taken = {"removeTenantAccess": {"tenant": "other"}}
    assert api.request("POST", path, taken, token=auth.ADMIN).json == {"flavor_access": []}
    assert api.request("POST", path, taken, token=auth.ADMIN).status_code == 404
    public = api.get("/flavors/big/os-flavor-access", token=auth.ADMIN)
    assert public.status_code == 404
    late = api.request("POST", "/flavors/big/action", body, version="2.7", token=auth.ADMIN)
    assert late.status_code == 409
    assert api.request("POST", path, body).status_code == 403


def test_an_extra_spec_without_a_name_is_refused(api: ComputeApi) -> None:
    for version, status in (("2.86", 400), ("2.85", 200)):
        answer = api.request(
            "POST",
            "/flavors/m1.small/os-extra_specs",
            {"extra_specs": {"resources:": "1"}},
            version=version,
            token=auth.ADMIN,
        )
        assert answer.status_code == status
        if status == 400:
            assert answer.json["badRequest"]["message"] == "There is no extra spec resources:."

"""Server groups: whose they are, what they show at each version, and servers in them."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.errors import QuotaExceeded
from tests.fixtures import auth
from tests.fixtures.compute import IMAGE, ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import NOW
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

PATH = "/os-server-groups"


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make()


def create(api: ComputeApi, name: str = "g", token: str = auth.MEMBER, **more: Any) -> Any:
    wanted = {"name": name, "policy": "anti-affinity", **more}
    return api.request("POST", PATH, {"server_group": wanted}, version="2.64", token=token)


def made(api: ComputeApi, name: str = "g", token: str = auth.MEMBER, **more: Any) -> str:
    answer = create(api, name, token, **more)
    assert answer.status_code == 200, answer.text
    return str(answer.json["server_group"]["id"])


def names(api: ComputeApi, query: str = "", **more: Any) -> list[str]:
    answer = api.get(f"{PATH}?{query}", **more)
    assert answer.status_code == 200, answer.text
    return [group["name"] for group in answer.json["server_groups"]]


def message(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    [fault] = answer.json.values()
    return str(fault["message"])


def test_what_each_version_shows(api: ComputeApi) -> None:
    uuid = made(api, rules={"max_server_per_host": "3"})
    old: dict[str, Any] = {
        "id": uuid,
        "name": "g",
        "members": [],
        "metadata": {},
        "policies": ["anti-affinity"],
    }
    owner = {"project_id": "demo", "user_id": "demo"}
    new = {
        "id": uuid,
        "name": "g",
        "members": [],
        "policy": "anti-affinity",
        "rules": {"max_server_per_host": 3},
        **owner,
    }
    for version, view in (
        ("2.1", old),
        ("2.12", old),
        ("2.13", old | owner),
        ("2.63", old | owner),
        ("2.64", new),
        ("2.103", new),
    ):
        assert api.get(f"{PATH}/{uuid}", version=version).json == {"server_group": view}
        assert api.get(PATH, version=version).json == {"server_groups": [view]}


@pytest.mark.parametrize(
    ("version", "policy", "status"),
    [
        ("2.1", "affinity", 200),
        ("2.1", "anti-affinity", 200),
        ("2.14", "soft-affinity", 400),
        ("2.15", "soft-affinity", 200),
        ("2.63", "soft-anti-affinity", 200),
        ("2.63", "legacy", 400),
    ],
)
def test_policies_before_2_64(api: ComputeApi, version: str, policy: str, status: int) -> None:
    body = {"server_group": {"name": "g", "policies": [policy]}}
    answer = api.request("POST", PATH, body, version=version)
    assert answer.status_code == status
    if status == 200:
        assert answer.json["server_group"]["policies"] == [policy]


def test_what_is_not_well_formed(api: ComputeApi) -> None:
    for group in (
        {"name": "g"},
        {"name": "g", "policies": []},
        {"name": "g", "policies": ["affinity", "anti-affinity"]},
        {"name": "g", "policy": "affinity"},
        {"name": " ", "policies": ["affinity"]},
    ):
        answer = api.request("POST", PATH, {"server_group": group}, version="2.15")
        assert answer.status_code == 400, group
    for rules in ({"max_server_per_host": 0}, {"max_server_per_host": "x"}, {"max": 1}, []):
        assert create(api, rules=rules).status_code == 400, rules
    assert create(api, policies=["affinity"]).status_code == 400
    refused = create(api, policy="soft-anti-affinity", rules={"max_server_per_host": 2})
    assert message(refused, 400) == "Only anti-affinity policy supports rules."
    assert create(api, policy="affinity", rules={}).status_code == 200


def test_a_group_is_its_project_s_own(api: ComputeApi) -> None:
    ours, theirs = made(api, "ours"), made(api, "theirs", auth.OTHER)
    assert names(api) == ["ours"]
    assert names(api, "all_projects=1") == ["ours"]
    assert names(api, token=auth.ADMIN) == []
    assert names(api, "all_projects", token=auth.ADMIN) == ["ours", "theirs"]
    for method in ("GET", "DELETE"):
        refused = message(api.request(method, f"{PATH}/{theirs}"), 404)
        assert refused == f"Instance group {theirs} could not be found."
    assert api.get(f"{PATH}/{theirs}", token=auth.ADMIN).status_code == 200
    assert api.request("DELETE", f"{PATH}/{ours}", token=auth.ADMIN).status_code == 204
    assert api.request("DELETE", f"{PATH}/{theirs}", token=auth.OTHER).status_code == 204
    for uuid in (ours, "x", uuid_of(9)):
        assert api.request("DELETE", f"{PATH}/{uuid}").status_code == 404


def test_readers_read(api: ComputeApi) -> None:
    uuid = made(api)
    assert names(api, token=auth.READER) == ["g"]
    assert api.get(f"{PATH}/{uuid}", token=auth.READER).status_code == 200
    assert create(api, token=auth.READER).status_code == 403
    assert api.request("DELETE", f"{PATH}/{uuid}", token=auth.READER).status_code == 403
    assert api.request("DELETE", f"{PATH}/{uuid}").status_code == 204


def test_parts_of_a_list(api: ComputeApi) -> None:
    for name in "abcd":
        made(api, name)
    assert names(api, "limit=2") == ["a", "b"]
    assert names(api, "limit=2&offset=1") == ["b", "c"]
    assert names(api, "offset=9") == []
    assert names(api, "limit=0") == ["a", "b", "c", "d"]
    for query in ("limit=-1", "limit=x", "offset=-1"):
        assert api.get(f"{PATH}?{query}").status_code == 400
    assert names(api, "x=1", version="2.74") == ["a", "b", "c", "d"]
    assert api.get(f"{PATH}?x=1", version="2.75").status_code == 400
    assert api.get(f"{PATH}/{made(api)}?x=1", version="2.101").status_code == 200


def test_servers_in_a_group(api: ComputeApi) -> None:
    uuid = made(api)
    body = {
        "server": {"name": "s", "flavorRef": "m1.small", "imageRef": IMAGE},
        "os:scheduler_hints": {"group": uuid},
    }
    server = api.request("POST", "/servers", body).json["server"]["id"]
    api.add(
        a_full_server(1, server_group_uuid=uuid),
        a_full_server(2, server_group_uuid=uuid, deleted_at=NOW),
    )

    def groups(version: str) -> Any:
        return api.get(f"/servers/{server}", version=version).json["server"].get("server_groups")

    assert set(api.get(f"{PATH}/{uuid}").json["server_group"]["members"]) == {server, uuid_of(1)}
    assert (groups("2.70"), groups("2.71")) == (None, [uuid])
    listed = api.get("/servers/detail", version="2.71").json["servers"]
    assert all("server_groups" not in one for one in listed)
    changed = {"server": {"name": "t"}}
    put = api.request("PUT", f"/servers/{server}", changed, version="2.71")
    assert put.json["server"]["server_groups"] == [uuid]
    assert api.request("DELETE", f"{PATH}/{uuid}").status_code == 204
    assert groups("2.71") == []


def test_hints_that_name_no_group(api: ComputeApi) -> None:
    def hinted(group: Any) -> Any:
        server = {"name": "s", "flavorRef": "m1.small", "imageRef": IMAGE}
        body = {"server": server, "os:scheduler_hints": {"group": group}}
        return api.request("POST", "/servers", body)

    group = made(api)
    assert hinted([group]).status_code == 202
    assert hinted([group, made(api)]).status_code == 400
    assert hinted("web").status_code == 400
    assert hinted(ids.new_uuid().replace("-", "")).status_code == 202


def test_quota(api: ComputeApi) -> None:
    made(api)
    api.conductor.fail = QuotaExceeded("Quota exceeded, too many server groups.")
    assert message(create(api), 403) == "Quota exceeded, too many server groups."
    detail = api.get("/os-quota-sets/demo/detail").json["quota_set"]
    assert detail["server_groups"] == {"limit": 10, "in_use": 1, "reserved": 0}
    assert api.get("/limits").json["limits"]["absolute"]["totalServerGroupsUsed"] == 1

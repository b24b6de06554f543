"""Lists of the clustering API: filtered before they are paged, and by what Senlin knows only."""

from __future__ import annotations

from typing import Any

import pytest

from common import clock
from db import schema
from tests.fixtures import auth
from tests.functional.api_clustering.conftest import ClusteringApi

DELETION = {"type": "senlin.policy.deletion", "version": "1.1", "properties": {}}
HEALTH = {"type": "senlin.policy.health", "version": "1.2", "properties": {}}


def pages(api: ClusteringApi, noun: str, query: str, size: int = 1) -> list[Any]:
    """All records of a list, read by pages of this size, as openstacksdk reads them."""
    found: list[Any] = []
    while True:
        marker = f"&marker={found[-1]['id']}" if found else ""
        page = api.show(f"/{noun}?limit={size}&{query}{marker}", noun)
        if not page:
            return found
        assert len(page) <= size
        found += page


@pytest.mark.parametrize("noun", ["profiles", "policies"])
def test_a_type_is_filtered_before_paging(api: ClusteringApi, noun: str) -> None:
    api.profile("first")
    for name, spec in (("a", DELETION), ("b", HEALTH), ("c", DELETION), ("d", HEALTH)):
        body = {"policy": {"name": name, "spec": spec}}
        assert api.ask("POST", "/policies", body)[0] == 201
    wanted = {
        "profiles": ("os.nova.server-1.0", ["first"]),
        "policies": ("senlin.policy.health-1.2", ["b", "d"]),
    }
    kind, names = wanted[noun]
    assert [one["name"] for one in pages(api, noun, f"type={kind}")] == names
    assert pages(api, noun, "type=other-1.0") == []


def test_nodes_are_filtered_by_status_before_paging(api: ClusteringApi) -> None:
    group = api.cluster(3)
    api.groups.agents.holds = True
    asked = {"resize": {"adjustment_type": "EXACT_CAPACITY", "number": 5}}
    assert api.ask("POST", f"/clusters/{group}/actions", asked)[0] == 202
    api.world._wait(lambda: len(api.groups.agents.held), lambda count: count == 2)
    building = pages(api, "nodes", "status=CREATING&sort=index")
    assert [one["name"] for one in building] == ["web-4", "web-5"]
    assert {one["status"] for one in building} == {"CREATING"}
    assert len(pages(api, "nodes", "status=ACTIVE&cluster_id=web", 2)) == 3
    assert len(pages(api, "nodes", "status=ACTIVE&status=CREATING", 2)) == 5
    assert pages(api, "nodes", "name=web-2&name=web-5&sort=index:desc")[0]["index"] == 5
    for command in api.groups.agents.held:
        api.groups.agents.answer(command)
    api.groups.settled(group, 5)


def test_actions_and_events_are_filtered_before_paging(api: ClusteringApi) -> None:
    group = api.cluster(2)
    for size in (3, 4, 3):
        api.act(group, "resize", {"adjustment_type": "EXACT_CAPACITY", "number": size})
        api.groups.settled(group, size)
    resized = pages(api, "actions", "action=CLUSTER_RESIZE")
    assert [one["action"] for one in resized] == ["CLUSTER_RESIZE"] * 3
    assert len({one["id"] for one in resized}) == 3
    assert pages(api, "actions", "status=RUNNING") == []
    both = pages(api, "actions", "action=CLUSTER_RESIZE&action=CLUSTER_CREATE&status=SUCCEEDED")
    assert len(both) == 4
    assert pages(api, "actions", f"name={both[0]['name']}")[0]["id"] == both[0]["id"]
    events = pages(api, "events", "otype=CLUSTER&oname=web&action=CLUSTER_RESIZE")
    assert [one["id"] for one in events] == [one["id"] for one in resized]
    assert pages(api, "events", "level=ERROR") == []


def test_actions_of_nodes_are_listed(api: ClusteringApi) -> None:
    group = api.cluster(2)
    first, second = api.show("/nodes?sort=index", "nodes")
    created = pages(api, "actions", "action=NODE_CREATE")
    assert [one["target"] for one in created] == [first["id"], second["id"]]
    assert {one["cluster_id"] for one in created} == {group}
    assert [one["id"] for one in pages(api, "actions", "target=web-2")] == [created[1]["id"]]
    assert created[1]["id"] in {one["id"] for one in pages(api, "actions", "cluster_id=web")}
    events = api.show(f"/events?otype=NODE&oid={second['id']}", "events")
    assert [(one["oname"], one["action"]) for one in events] == [("web-2", "NODE_CREATE")]
    api.act(group, "scale_in", {"count": "1"})
    api.groups.settled(group, 1)
    (deleted,) = pages(api, "actions", "action=NODE_DELETE")
    assert (deleted["status"], deleted["cluster_id"]) == ("SUCCEEDED", group)

    # What a user does with a server that is in no group is not of groups.
    def everywhere() -> Any:
        return api.ask("GET", "/actions?global_project=True", token=auth.ADMIN)[1]["actions"]

    before = everywhere()
    (alone,) = api.world.create()
    api.world.until(alone, "active")
    assert everywhere() == before
    assert api.ask("GET", "/actions", token=auth.OTHER)[1] == {"actions": []}
    assert api.ask("GET", "/events", token=auth.OTHER)[1] == {"events": []}


@pytest.mark.parametrize(
    "noun", ["profiles", "policies", "clusters", "nodes", "receivers", "actions", "events"]
)
def test_a_filter_that_no_list_has_is_refused(api: ClusteringApi, noun: str) -> None:
    status, body = api.ask("GET", f"/{noun}?colour=red")
    assert (status, body["error"]["message"]) == (400, "Invalid parameter colour")
    assert api.ask("GET", f"/{noun}?limit=5&sort=created_at&global_project=False")[0] == 200
    assert api.ask("GET", f"/{noun}?sort=colour")[0] == 400
    assert api.ask("GET", f"/{noun}?marker=nobody")[0] == 400


@pytest.mark.parametrize(
    "query",
    [
        *("clusters?status=GREEN", "nodes?status=SHUTOFF", "actions?action=CLUSTER_DANCE"),
        *("actions?status=DONE", "events?level=LOUD", "receivers?type=pigeon"),
        *("receivers?action=NODE_CREATE", "clusters/web/policies?colour=red"),
        "clusters/web/policies?enabled=perhaps",
    ],
)
def test_a_value_that_nothing_has_is_refused(api: ClusteringApi, query: str) -> None:
    api.cluster(0)
    assert api.ask("GET", f"/{query}")[0] == 400


def test_a_list_that_is_cut_names_its_rest(api: ClusteringApi) -> None:
    rows = [
        {
            **{"id": f"{index:036}", "project_id": "demo", "user_id": "demo"},
            **{"name": f"n{index}", "spec": DELETION, "created_at": clock.utcnow()},
        }
        for index in range(1003)
    ]
    insert = schema.scaling_policies.insert()
    api.world.conductor.store.run(lambda c: c.execute(insert, rows))

    def names(answer: Any) -> list[str]:
        return [one["name"] for one in answer.json["policies"]]

    first = api.answer("GET", "/v1/policies?sort=name&type=senlin.policy.deletion-1.1")
    link, _, rel = first.headers["link"].partition("; ")
    assert rel == 'rel="next"'
    last = api.answer("GET", "/v1" + link.strip("<>").partition("/v1")[2])
    assert names(first) + names(last) == sorted(one["name"] for one in rows)
    assert "link" not in last.headers
    assert "link" not in api.answer("GET", "/v1/policies?limit=2").headers


def test_policies_of_a_cluster_are_filtered(api: ClusteringApi) -> None:
    group = api.cluster(0)
    for name, spec in (("d", DELETION), ("h", HEALTH)):
        api.ask("POST", "/policies", {"policy": {"name": name, "spec": spec}})
        api.act(group, "policy_attach", {"policy_id": name, "enabled": name == "d"})

    def named(query: str) -> list[str]:
        found = api.show(f"/clusters/web/policies?{query}", "cluster_policies")
        return [one["policy_name"] for one in found]

    assert named("enabled=true") == ["d"]
    assert named("enabled=False") == ["h"]
    assert named("policy_type=senlin.policy.health-1.2") == ["h"]
    assert named("policy_name=d&enabled=false") == []

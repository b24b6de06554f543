"""Answers of the clustering API that Senlin gives so, too."""

from __future__ import annotations

from typing import Any

import pytest

from db import schema
from tests.fixtures import auth
from tests.functional.api_clustering.conftest import SPEC, ClusteringApi
from tests.functional.conductor.harness import IMAGE

DELETION = {"type": "senlin.policy.deletion", "version": "1.1", "properties": {}}
HEALTH = {"type": "senlin.policy.health", "version": "1.2", "properties": {}}
PROFILE_KEYS = {
    *("created_at", "domain", "id", "metadata", "name", "project", "spec", "type", "updated_at"),
    "user",
}


def policy(api: ClusteringApi, name: str = "p", spec: Any = DELETION) -> str:
    """The ID of a new policy."""
    status, made = api.ask("POST", "/policies", {"policy": {"name": name, "spec": spec}})
    assert status == 201, made
    return str(made["policy"]["id"])


def webhook(api: ClusteringApi, **values: Any) -> str:
    """The path of a new webhook of the cluster `web`, with its secret."""
    asked = {"name": "out", "type": "webhook", "cluster_id": "web", "action": "CLUSTER_SCALE_OUT"}
    status, made = api.ask("POST", "/receivers", {"receiver": {**asked, **values}})
    assert status == 201, made
    return "/v1" + str(made["receiver"]["channel"]["alarm_url"]).partition("/v1")[2]


# --- versions


def test_the_version_document(api: ClusteringApi) -> None:
    shown = api.answer("GET", "/v1/", token=None).json["version"]
    assert shown["media-types"][0]["base"] == "application/json"
    assert [one["rel"] for one in shown["links"]] == ["self", "help"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/clusters/web/actions", {"replace_nodes": {"nodes": {"a": "b"}}}),
        ("PATCH", "/receivers/out", {"receiver": {"name": "x"}}),
    ],
)
def test_an_operation_of_a_later_version_is_refused(
    api: ClusteringApi, method: str, path: str, body: Any
) -> None:
    api.cluster(0)
    webhook(api)
    assert api.ask(method, path, body, version="1.2")[0] == 400


@pytest.mark.parametrize(
    ("path", "key", "since"),
    [
        ("/actions", "cluster_id", 14),
        ("/nodes", "tainted", 13),
        ("/policy-types/senlin.policy.health-1.2", "support_status", 5),
        ("/profile-types/os.nova.server-1.0", "support_status", 5),
    ],
)
def test_keys_that_a_version_brought(api: ClusteringApi, path: str, key: str, since: int) -> None:
    api.cluster(1)

    def has(version: int) -> bool:
        (found,) = api.ask("GET", path, version=f"1.{version}")[1].values()
        if isinstance(found, dict):
            return key in found
        alone = api.ask("GET", f"{path}/{found[0]['id']}", version=f"1.{version}")[1]
        return {key in one for one in (*found, *alone.values())} == {True}

    assert [has(since - 1), has(since)] == [False, True]


# --- lists


@pytest.mark.parametrize(
    "noun", ["profiles", "policies", "clusters", "nodes", "receivers", "actions", "events"]
)
def test_what_is_blank_is_not_given(api: ClusteringApi, noun: str) -> None:
    api.cluster(1)
    listed = api.ask("GET", f"/{noun}")
    assert api.ask("GET", f"/{noun}?limit=&marker=&sort=&global_project=") == listed
    assert api.ask("GET", f"/{noun}?limit=0") == (200, {noun: []})
    for query in ("limit=-1", "limit=x", "sort=name:up", "marker=nobody", "global_project=maybe"):
        assert api.ask("GET", f"/{noun}?{query}")[0] == 400, query


def test_nodes_of_the_cluster_that_is_named_last(api: ClusteringApi) -> None:
    api.cluster(1)
    assert len(api.show("/nodes?cluster_id=", "nodes")) == 1
    assert len(api.show("/nodes?cluster_id=nobody&cluster_id=web", "nodes")) == 1
    assert api.ask("GET", "/nodes?cluster_id=nobody")[0] == 400


def test_receivers_of_an_unknown_cluster_are_none(api: ClusteringApi) -> None:
    api.cluster(0)
    webhook(api)
    assert len(api.show("/receivers?cluster_id=web", "receivers")) == 1
    assert api.show("/receivers?cluster_id=nobody", "receivers") == []


def test_a_list_of_clusters_has_their_policies(api: ClusteringApi) -> None:
    group = api.cluster(0)
    found = policy(api)
    api.act(group, "policy_attach", {"policy_id": found})
    (listed,) = api.show("/clusters", "clusters")
    assert listed == api.show(f"/clusters/{group}", "cluster")
    assert listed["policies"] == [found]


def test_policies_of_a_cluster_are_sorted(api: ClusteringApi) -> None:
    group = api.cluster(0)
    for name, spec in (("a", DELETION), ("b", HEALTH)):
        enabled = {"policy_id": policy(api, name, spec), "enabled": name == "a"}
        api.act(group, "policy_attach", enabled)

    def named(query: str) -> list[str]:
        found = api.show(f"/clusters/web/policies?{query}", "cluster_policies")
        return [one["policy_name"] for one in found]

    assert named("sort=enabled") == ["b", "a"]
    assert named("sort=enabled:desc") == ["a", "b"]
    assert named("policy_name=&enabled=&policy_name=b") == ["b"]
    for query in ("sort=policy_name", "limit=1", "marker=x"):
        assert api.ask("GET", f"/clusters/web/policies?{query}")[0] == 400, query


# --- records


def test_what_is_valid_is_shown_as_what_is_made(api: ClusteringApi) -> None:
    _, found = api.ask("POST", "/profiles/validate", {"profile": {"spec": SPEC}})
    assert set(found["profile"]) == PROFILE_KEYS
    assert (found["profile"]["id"], found["profile"]["project"]) == (None, "demo")
    _, found = api.ask("POST", "/policies/validate", {"policy": {"spec": DELETION}})
    assert set(found["policy"]) == PROFILE_KEYS - {"metadata"} | {"data"}


@pytest.mark.parametrize(("noun", "spec"), [("profile", SPEC), ("policy", DELETION)])
def test_a_misspelled_spec_is_refused(api: ClusteringApi, noun: str, spec: Any) -> None:
    path = f"/{noun}s".replace("ys", "ies")
    for key, made, valid in (("propertise", 400, 400), ("description", 201, 200)):
        body = {noun: {"name": "x", "spec": {**spec, key: "x"}}}
        assert api.ask("POST", path, body)[0] == made
        assert api.ask("POST", f"{path}/validate", body)[0] == valid


@pytest.mark.parametrize("noun", ["profile", "policy", "receiver"])
def test_names_are_as_long_as_senlin_s(api: ClusteringApi, noun: str) -> None:
    profile = api.profile()
    api.ask("POST", "/clusters", {"cluster": {"name": "web", "profile_id": profile}})
    action = {"type": "webhook", "cluster_id": "web", "action": "CLUSTER_CHECK"}
    more: dict[str, Any] = {
        "profile": {"spec": SPEC},
        "policy": {"spec": DELETION},
        "receiver": action,
    }
    path = f"/{noun}s".replace("ys", "ies")
    for length, status in ((255, 201), (256, 400)):
        body = {noun: {"name": "x" * length, **more[noun]}}
        assert api.ask("POST", path, body)[0] == status


@pytest.mark.parametrize("noun", ["profile", "policy", "receiver", "cluster", "node"])
def test_names_have_no_spaces_around_them(api: ClusteringApi, noun: str) -> None:
    api.cluster(1)
    policy(api)
    webhook(api)
    path = f"/{noun}s".replace("ys", "ies")
    found = api.show(path, path.strip("/"))[0]["id"]
    assert api.ask("PATCH", f"{path}/{found}", {noun: {"name": " other "}})[0] in (200, 202)
    assert api.show(f"{path}/other", noun)["id"] == found


def test_an_update_of_a_node_is_accepted(api: ClusteringApi) -> None:
    api.cluster(1)
    answer = api.answer("PATCH", "/v1/nodes/web-1", {"node": {"role": "first"}})
    assert (answer.status_code, answer.json["node"]["role"]) == (202, "first")
    number = answer.headers["location"].rpartition("/")[2]
    assert api.show(f"/actions/{number}", "action")["status"] == "SUCCEEDED"
    assert api.show("/nodes/web-1", "node")["updated_at"] is not None


def test_a_node_that_has_no_server_yet_is_changed(api: ClusteringApi) -> None:
    api.groups.agents.broken = lambda _: True
    asked = {"name": "web", "profile_id": api.profile(), "desired_capacity": 1, "max_size": 5}
    assert api.ask("POST", "/clusters", {"cluster": asked})[0] == 202
    answer = api.answer("PATCH", "/v1/nodes/web-1", {"node": {"role": "first"}})
    number = answer.headers["location"].rpartition("/")[2]
    assert api.ask("GET", f"/actions/{number}")[0] == 200


def test_a_node_has_its_role_from_the_beginning(api: ClusteringApi) -> None:
    asked = {"name": "alone", "profile_id": api.profile(), "role": "first"}
    status, made = api.ask("POST", "/nodes", {"node": asked})
    assert (status, made["node"]["role"]) == (202, "first")
    assert api.show("/nodes/alone", "node")["role"] == "first"


def test_the_details_of_a_node_are_its_server_s(api: ClusteringApi) -> None:
    api.cluster(1, profile=api.profile(metadata={"release": "2"}))
    shown = api.show("/nodes/web-1?show_details=True", "node")
    details = shown["details"]
    assert (details["id"], details["name"]) == (shown["physical_id"], "web-1")
    assert (details["status"], details["OS-EXT-STS:power_state"]) == ("ACTIVE", 1)
    (flavor,) = api.world.rows(schema.flavors)
    assert (details["flavor"], details["image"]) == (flavor.flavorid, IMAGE)
    assert (details["metadata"]["release"], details["attached_volumes"]) == ("2", [])
    assert isinstance(details["addresses"], dict)
    assert isinstance(details["security_groups"], str)
    assert "details" not in api.show("/nodes/web-1?show_details=false", "node")


def test_a_node_that_its_cluster_does_not_take_is_none(api: ClusteringApi) -> None:
    group = api.cluster(1, max_size="1")
    asked = {"name": "more", "profile_id": "small", "cluster_id": group}
    assert api.ask("POST", "/nodes", {"node": asked})[0] == 400
    assert [one["name"] for one in api.show("/nodes", "nodes")] == ["web-1"]
    api.groups.world._wait(lambda: len(api.groups.servers()), lambda count: count == 1)


# --- actions


def test_an_action_is_found_by_its_name(api: ClusteringApi) -> None:
    group = api.cluster(0)
    name = f"cluster_create_{group[:8]}"
    assert api.show(f"/actions/{name}", "action")["target"] == group
    assert api.ask("GET", f"/actions/{name}", token=auth.OTHER)[0] == 404
    for size in (1, 2):
        api.act(group, "resize", {"max_size": size})
    assert api.ask("GET", f"/actions/cluster_resize_{group[:8]}")[0] == 400
    assert api.ask("GET", f"/events/{name}")[0] == 404


def test_a_node_in_no_cluster_is_checked(api: ClusteringApi) -> None:
    api.ask("POST", "/nodes", {"node": {"name": "alone", "profile_id": api.profile()}})
    status, begun = api.ask("POST", "/nodes/alone/actions", {"check": {}})
    assert status == 202
    assert api.show(f"/actions/{begun['action']}", "action")["action"] == "NODE_CREATE"


@pytest.mark.parametrize(
    "body",
    [
        *({"resize": {}}, {"resize": {"strict": True}}, {"resize": {"min_step": 1}}),
        {"resize": {"min_step": -1, "adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 10}},
        *({"check": []}, {"check": 5}, {"micronova:pause": "now"}),
        *({"add_nodes": {"nodes": ["web-1"]}}, {"del_nodes": {"nodes": ["alone"]}}),
        {"replace_nodes": {"nodes": {"alone": "web-1"}}},
        *({"policy_detach": {"policy_id": "p"}}, {"policy_update": {"policy_id": "p"}}),
        *({}, {"scale_in": {}, "scale_out": {}}, {"dance": {}}),
    ],
)
def test_an_action_that_can_not_be_is_refused(api: ClusteringApi, body: Any) -> None:
    api.cluster(1)
    policy(api)
    api.ask("POST", "/nodes", {"node": {"name": "alone", "profile_id": "small"}})
    before = api.show("/actions", "actions")
    assert api.ask("POST", "/clusters/web/actions", body)[0] == 400
    assert [one["id"] for one in api.show("/actions", "actions")] == [one["id"] for one in before]
    if "check" in body:
        assert api.ask("POST", "/nodes/web-1/actions", body)[0] == 400


def test_an_update_of_a_policy_leaves_what_it_does_not_name(api: ClusteringApi) -> None:
    group = api.cluster(0)
    which = {"policy_id": policy(api)}
    for enabled in (False, True):
        api.act(group, "policy_attach", {**which, "enabled": enabled})
        assert api.act(group, "policy_update", which)["status"] == "SUCCEEDED"
        (bound,) = api.show(f"/clusters/{group}/policies", "cluster_policies")
        assert bound["enabled"] is enabled


def test_operations_of_an_unknown_type_are_refused(api: ClusteringApi) -> None:
    assert api.ask("GET", "/profile-types/os.nova.server-1.0/ops") == (200, {"operations": {}})
    assert api.ask("GET", "/profile-types/pigeon/ops")[0] == 400


def test_a_delete_with_a_wrong_force_is_refused(api: ClusteringApi) -> None:
    group = api.cluster(0)
    assert api.ask("DELETE", "/clusters/web?force=perhaps")[0] == 400
    assert api.show("/clusters/web", "cluster")["id"] == group
    assert api.ask("DELETE", "/clusters/web?force=true")[0] == 202


@pytest.mark.parametrize(
    ("body", "status"),
    [({"action": {"status": "CANCELLED"}}, 501), ({"action": {"status": "DONE"}}, 400), ({}, 400)],
)
def test_an_action_is_not_cancelled(api: ClusteringApi, body: Any, status: int) -> None:
    api.cluster(0)
    assert api.ask("PATCH", "/actions/1", body)[0] == status


def test_a_node_is_not_tainted(api: ClusteringApi) -> None:
    api.cluster(1)
    for tainted, status in ((True, 501), ("True", 501), (False, 202)):
        changed = {"node": {"role": "first", "tainted": tainted}}
        assert api.ask("PATCH", "/nodes/web-1", changed)[0] == status


# --- webhooks


def test_a_webhook_is_not_notified(api: ClusteringApi) -> None:
    api.cluster(0)
    webhook(api)
    assert api.ask("POST", "/receivers/out/notify")[0] == 400


@pytest.mark.parametrize(
    "body",
    [
        *(b"status=firing", b"<alert/>", b"\xff\xfe", b"[1]", b'{"alerts": ["\\u0000"]}'),
        *(b'{"value": 123456789012345678901234567890}', b"[" * 100 + b"]" * 100),
        *(b'"' + b"x" * 200_000 + b'"', b'{"count": "many"}', b'{"count": 0}', b'{"count": true}'),
    ],
)
def test_a_webhook_takes_the_body_of_any_alert(api: ClusteringApi, body: bytes) -> None:
    group = api.cluster(1)
    path, _, query = webhook(api).partition("?")
    answer = api._client.simulate_post(path, query_string=query, body=body)
    assert answer.status_code == 202, answer.text
    api.groups.ended(int(answer.json["action"]))
    api.groups.settled(group, 2)


@pytest.mark.parametrize(
    ("query", "body", "size"),
    [
        *(("", {"count": 2}, 3), ("", {"count": "2", "alert": "x"}, 3)),
        *(("", {"params": {"count": 2}}, 3), ("&count=3", {"count": 2}, 4)),
        *(("", {"alert": "x"}, 2), ("", None, 2)),
    ],
)
def test_a_call_of_a_webhook_names_a_count(
    api: ClusteringApi, query: str, body: Any, size: int
) -> None:
    group = api.cluster(1)
    path = webhook(api, params={"count": 1})
    answer = api.answer("POST", path + query, body, token=None)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"].endswith(f"/v1/actions/{answer.json['action']}")
    api.groups.ended(int(answer.json["action"]))
    api.groups.settled(group, size)


# --- errors


def test_an_unknown_path_is_no_internal_error(api: ClusteringApi) -> None:
    for method, path, status in (("GET", "/pigeons", 404), ("PUT", "/clusters", 405)):
        found, answer = api.ask(method, path)
        assert (found, answer["error"]["code"]) == (status, status)
        assert answer["error"]["type"] != "InternalError"

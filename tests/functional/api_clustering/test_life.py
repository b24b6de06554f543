"""The life of a group over HTTP, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from common import clock
from common.context import internal
from common.messages.commands import Build
from common.messages.facts import StorageFacts
from common.messages.health import CheckResult, GuestHealth
from conductor.servers.record import lock
from conductor.store.groups import checks
from conductor.store.networks import networks, user_ports
from conductor.store.volumes import attachments
from db import schema
from tests.fixtures import auth
from tests.functional.api_clustering.conftest import SPEC, ClusteringApi
from tests.functional.conductor.harness import IMAGE


def test_the_version_documents_need_no_token(api: ClusteringApi) -> None:
    answer = api.answer("GET", "/", token=None)
    assert answer.status_code == 300
    (version,) = answer.json["versions"]
    assert (version["min_version"], version["max_version"]) == ("1.0", "1.14")
    answer = api.answer("GET", "/v1/", token=None)
    assert (answer.status_code, answer.json["version"]["id"]) == (200, "1.0")
    assert api.answer("GET", "/v1/clusters", token=None).status_code == 401


def test_a_group_lives_and_is_deleted(api: ClusteringApi) -> None:
    group = api.cluster(3, max_size="10")
    shown = api.show("/clusters/web", "cluster")
    assert (shown["id"], shown["desired_capacity"], shown["max_size"]) == (group, 3, 10)
    assert (shown["status"], shown["profile_name"], len(shown["nodes"])) == ("ACTIVE", "small", 3)
    done = api.act(group, "resize", {"adjustment_type": "EXACT_CAPACITY", "number": 6})
    assert (done["status"], done["action"]) == ("SUCCEEDED", "CLUSTER_RESIZE")
    assert len(api.show("/nodes?cluster_id=web", "nodes")) == 6
    done = api.act(group, "scale_in", {"count": "2"})
    assert done["status"] == "SUCCEEDED"
    nodes = api.show("/nodes?cluster_id=web", "nodes")
    assert len(nodes) == 4
    assert {one["status"] for one in nodes} == {"ACTIVE"}
    assert {one["physical_id"] for one in nodes} == set(api.groups.servers())
    answer = api.answer("DELETE", "/v1/clusters/web")
    assert answer.status_code == 202
    number = answer.headers["location"].rpartition("/")[2]
    assert api.groups.ended(int(number)) == ("done", "The group is deleted.")
    assert api.ask("GET", "/clusters/web")[0] == 404
    assert not api.groups.servers()
    assert not api.groups.members()
    status, _ = api.ask("DELETE", "/profiles/small")
    assert status == 204


def test_a_group_whose_servers_are_kept(api: ClusteringApi) -> None:
    group = api.cluster(2)
    assert api.act(group, "micronova:delete", {"keep": True})["status"] == "SUCCEEDED"
    assert api.ask("GET", f"/clusters/{group}")[0] == 404
    kept = api.groups.servers()
    assert {one.member_of for one in kept.values()} == {None}
    assert len(kept) == 2


def test_members_are_replaced_by_such_of_another_profile(api: ClusteringApi) -> None:
    group = api.cluster(3)
    before = set(api.groups.servers())
    most = 0

    def count(command: Any) -> bool:
        nonlocal most
        most = max(most, len(api.groups.servers()))
        return False

    api.groups.agents.broken = count
    other = api.profile("newer", metadata={"release": "2"})
    status, _ = api.ask(
        "PATCH", f"/clusters/{group}", {"cluster": {"profile_id": "newer", "name": None}}
    )
    assert status == 202
    api.groups.world._wait(lambda: api.groups.group(group).rolling, lambda rolling: not rolling)
    api.groups.settled(group, 3)
    after = api.groups.servers()
    assert not before & set(after)
    assert {one.meta["release"] for one in after.values()} == {"2"}
    assert {one.profile_id for one in api.groups.members()} == {other}
    # One more than desired at the most.
    assert most == 4


def test_an_update_whose_new_members_fail_is_reverted(api: ClusteringApi) -> None:
    group = api.cluster(2)
    before = api.groups.servers()
    first = api.groups.group(group).profile_id
    api.groups.agents.broken = lambda command: isinstance(command, Build)
    api.profile("bad", metadata={"release": "2"})
    api.ask("PATCH", f"/clusters/{group}", {"cluster": {"profile_id": "bad"}})
    from tests.functional.conductor.test_groups import hasten_all

    hasten_all(api.groups, group, lambda: api.groups.group(group).profile_id == first)
    api.groups.settled(group, 2)
    assert set(api.groups.servers()) == set(before)
    assert api.groups.group(group).status_reason.startswith("Rolled back: 5 creations in a row")


def test_what_can_t_be_reached_is_explained(api: ClusteringApi) -> None:
    group = api.cluster(1)
    api.world.beat(lost="pve1")
    api.groups.settled(group, 1, "ERROR")
    path = f"/clusters/{group}/explanation"
    seen = api.show(path, "explanation")
    assert any("web-1 can't be reached." in one for one in seen["sentences"])
    assert seen["nodes"][0]["reason"].startswith("Its node does not answer")
    assert "pve1" not in str(seen)
    _, body = api.ask("GET", path, token=auth.ADMIN)
    mark = "`openstack compute service set --down pve1 nova-compute`."
    assert body["explanation"]["sentences"][-1].endswith(mark)


def test_the_last_result_of_a_check_is_shown(api: ClusteringApi) -> None:
    config = {"micronova.health_tcp_port": "80", "micronova.health_grace": "0"}
    group = api.cluster(3)
    status, _ = api.ask("PATCH", f"/clusters/{group}", {"cluster": {"config": config}})
    assert status == 202
    api.groups.settled(group, 3)
    store = api.world.conductor.store
    with store.read() as connection:
        asked = {one.name: one for one in checks.of_worker(connection, "w1")}
    text = "Port 80 takes no connection."
    found = [
        GuestHealth(one.server_uuid, one.begins_at, CheckResult.SICK, text)
        for one in asked.values()
    ]
    store.run(lambda c: checks.take(c, "w1", found))
    api.groups.settled(group, 3, "ERROR")
    seen = api.show(f"/clusters/{group}/explanation", "explanation")
    assert any(one.startswith("web-1 is not well since 20") for one in seen["sentences"])
    assert any("All of its 3 members are not well at once" in one for one in seen["sentences"])
    assert {one["health"]["reason"] for one in seen["nodes"]} == {text}
    node = api.show("/nodes/web-2", "node")
    assert (node["data"]["health"]["result"], node["data"]["health"]["reason"]) == ("sick", text)


URL = {"poll_url": "http://{nodename}:8080/health"}


@pytest.mark.parametrize(
    ("detection", "status"),
    [
        ({"detection_modes": [{"type": "NODE_STATUS_POLLING"}], "interval": 60}, 201),
        ({"detection_modes": [{"type": "NODE_STATUS_POLL_URL", "options": URL}]}, 201),
        ({"detection_modes": [{"type": "NODE_STATUS_POLL_URL"}]}, 400),
        ({"detection_modes": [{"type": "NODE_STATUS_POLL_URL", "options": {}}]}, 400),
        (
            {
                "detection_modes": [
                    {
                        "type": "NODE_STATUS_POLL_URL",
                        "options": {"poll_url": "http://169.254.169.254/latest/meta-data"},
                    }
                ]
            },
            400,
        ),
        (
            {
                "detection_modes": [
                    {
                        "type": "NODE_STATUS_POLL_URL",
                        "options": {**URL, "poll_url_healthy_response": "^OK$"},
                    }
                ]
            },
            400,
        ),
        ({"detection_modes": [{"type": "PSYCHIC"}]}, 400),
        ({"detection_modes": [7]}, 400),
        ({"detection_modes": {"type": "NODE_STATUS_POLLING"}}, 400),
        ({"interval": "often"}, 400),
        ({"interval": 1}, 400),
        ({"node_update_timeout": True}, 400),
        ({"recovery_conditional": "ALL_FAILED"}, 501),
        ({"interval": 60, "unheard": 1}, 400),
    ],
)
def test_health_policies(api: ClusteringApi, detection: Any, status: int) -> None:
    spec = {
        "type": "senlin.policy.health",
        "version": "1.2",
        "properties": {"detection": detection, "recovery": {"actions": [{"name": "REBUILD"}]}},
    }
    found, body = api.ask("POST", "/policies", {"policy": {"name": "h", "spec": spec}})
    assert found == status, body


def test_options_of_checks_are_checked(api: ClusteringApi) -> None:
    group = api.cluster(1)
    for config in (
        {"micronova.health_url": "http://10.0.0.1/"},
        {"micronova.health_tcp_port": 70000},
        {"micronova.health_interval": 1},
        {"micronova.health_agent": "maybe"},
    ):
        asked = {"cluster": {"config": config}}
        assert api.ask("PATCH", f"/clusters/{group}", asked)[0] == 400, config


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"micronova.keep": "volumes,names"}, "micronova.keep can't have 'names'"),
        ({"micronova.keep": 5}, "micronova.keep must be volumes, ports, or empty"),
        ({"micronova.keep": "volumes", "micronova.max_surge": 1}, "max_surge must be 0"),
        ({"micronova.keep": "ports", "micronova.max_surge": 1}, "a port can't be attached to two"),
        (
            {"micronova.keep": "volumes", "micronova.max_unavailable": 0},
            "max_unavailable must be at least 1",
        ),
    ],
)
def test_what_places_can_t_keep(api: ClusteringApi, config: dict[str, Any], sentence: str) -> None:
    group = api.cluster(1)
    before = api.ask("GET", f"/clusters/{group}")
    status, answer = api.ask("PATCH", f"/clusters/{group}", {"cluster": {"config": config}})
    assert status == 400
    assert sentence in str(answer)
    assert api.ask("GET", f"/clusters/{group}") == before


def test_a_place_that_keeps_volumes_shows_and_explains_them(api: ClusteringApi) -> None:
    api.world.storages.append(StorageFacts("data", "rbd", True, True, 1000, 900, ("images",)))
    api.world.beat()
    disk = {"boot_index": -1, "source_type": "blank", "destination_type": "volume"}
    device = {**disk, "volume_size": 2, "delete_on_termination": True}
    root = {"boot_index": 0, "source_type": "image", "destination_type": "local", "uuid": IMAGE}
    profile = api.profile("data", block_device_mapping_v2=[root, device])
    group = api.cluster(1, profile=profile, config={"micronova.keep": "volumes"})
    (node,) = api.show(f"/nodes?cluster_id={group}", "nodes")
    (made,) = api.world.rows(schema.volumes)
    assert node["data"] == {"volumes": [made.id]}
    assert (made.name, made.project_id) == ("web-1-volume-1", node["project"])
    assert api.ask("GET", f"/nodes/{node['id']}", token=auth.OTHER)[0] == 404
    # Its user attaches it elsewhere.
    store = api.world.conductor.store
    store.run(lambda c: attachments.delete(c, made.id, node["physical_id"]))
    api.groups.rpc._runner.submit(
        api.world.conductor.accept.act(internal(), node["physical_id"], "delete")
    )
    why = f"web-1 waits: Its volume {made.id} is in-use: it gets a server once that is free."
    api.world._wait(
        lambda: api.ask("GET", f"/clusters/{group}/explanation")[1]["explanation"]["sentences"],
        lambda found: why in found,
    )


def test_a_place_that_keeps_ports_shows_and_explains_them(api: ClusteringApi) -> None:
    store = api.world.conductor.store
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/29")
    store.run(lambda c: networks.ensure_subnet(c, subnet))
    group = api.cluster(1, config={"micronova.keep": "ports"})
    (node,) = api.show(f"/nodes?cluster_id={group}", "nodes")
    (made,) = api.world.rows(schema.ports)
    assert node["data"] == {"ports": [made.id]}
    assert (made.name, made.server_uuid) == ("web-1-port-1", node["physical_id"])
    assert api.ask("GET", f"/nodes/{node['id']}", token=auth.OTHER)[0] == 404

    def explained() -> Any:
        return api.ask("GET", f"/clusters/{group}/explanation")[1]["explanation"]

    found = explained()
    assert found["nodes"][0]["ports"] == [made.id]
    says = "Its places keep ports: the next server in a place gets the former one's."
    assert says in found["sentences"]
    # Its user attaches it elsewhere.
    store.run(
        lambda c: (user_ports.free(c, made.id), user_ports.give(c, made.id, "other", 0, None))
    )
    api.groups.rpc._runner.submit(
        api.world.conductor.accept.act(internal(), node["physical_id"], "delete")
    )
    why = f"web-1 waits: Its port {made.id} is in use: it gets a server once that is free."
    api.world._wait(lambda: explained()["sentences"], lambda sentences: why in sentences)
    store.run(lambda c: user_ports.free(c, made.id))


def test_a_deletion_policy_decides_who_leaves(api: ClusteringApi) -> None:
    spec = {
        "type": "senlin.policy.deletion",
        "version": "1.1",
        "properties": {"criteria": "YOUNGEST_FIRST"},
    }
    status, made = api.ask("POST", "/policies", {"policy": {"name": "young", "spec": spec}})
    assert (status, made["policy"]["type"]) == (201, "senlin.policy.deletion-1.1")
    group = api.cluster(4)
    done = api.act(group, "policy_attach", {"policy_id": "young", "enabled": True})
    assert done["status"] == "SUCCEEDED"
    (bound,) = api.show(f"/clusters/{group}/policies", "cluster_policies")
    assert (bound["policy_name"], bound["enabled"]) == ("young", True)
    api.act(group, "scale_in", {"count": "2"})
    # Two of each host are left by age within it.
    assert sorted(one.member_index for one in api.groups.members())[:1] == [1]
    assert api.ask("DELETE", "/policies/young")[0] == 409
    api.act(group, "policy_detach", {"policy_id": "young"})
    assert api.ask("DELETE", "/policies/young")[0] == 204


def test_a_webhook_scales_without_a_token(api: ClusteringApi) -> None:
    group = api.cluster(1)
    body = {
        "receiver": {
            "name": "out",
            "type": "webhook",
            "cluster_id": "web",
            "action": "CLUSTER_SCALE_OUT",
            "params": {"count": "2"},
        }
    }
    status, made = api.ask("POST", "/receivers", body)
    assert status == 201
    url = made["receiver"]["channel"]["alarm_url"]
    # The same token sees it again, as python-senlinclient asks; another one does not.
    assert api.show("/receivers/out", "receiver")["channel"]["alarm_url"] == url
    path = "/v1" + url.partition("/v1")[2]
    secret = path.partition("key=")[2]
    assert len(secret) == 64
    (row,) = api.world.rows(__import__("db.schema").schema.scaling_receivers)
    assert secret not in str(row)
    answer = api.answer("POST", path, {"alerts": [{"status": "firing"}]}, token=None)
    assert answer.status_code == 202, answer.text
    assert api.groups.ended(int(answer.json["action"]))[0] == "done"
    api.groups.settled(group, 3)
    wrong = path.replace(secret, "0" * 64)
    assert api.answer("POST", wrong, token=None).status_code == 404
    assert api.answer("POST", path.replace("key=", "ky="), token=None).status_code == 404
    # At the limit of the group it is not refused: an alert that repeats itself does no harm.
    assert api.answer("POST", path, token=None).status_code == 202
    api.groups.settled(group, 5)
    assert api.answer("POST", path, token=None).status_code == 202
    assert api.ask("DELETE", "/receivers/out")[0] == 204
    assert api.answer("POST", path, token=None).status_code == 404


def test_a_webhook_is_called_so_often_only(api: ClusteringApi) -> None:
    api.cluster(1)
    asked = {"name": "c", "type": "webhook", "cluster_id": "web", "action": "CLUSTER_CHECK"}
    _, made = api.ask("POST", "/receivers", {"receiver": asked})
    path = "/v1" + made["receiver"]["channel"]["alarm_url"].partition("/v1")[2]
    statuses = [api.answer("POST", path, token=None).status_code for _ in range(32)]
    assert statuses.count(202) == 30
    assert statuses[-2:] == [429, 429]


def test_nodes_leave_and_come(api: ClusteringApi) -> None:
    group = api.cluster(2)
    first, second = api.show("/nodes?cluster_id=web", "nodes")
    done = api.act(group, "del_nodes", {"nodes": [first["id"]], "destroy_after_deletion": False})
    assert done["status"] == "SUCCEEDED"
    assert api.show(f"/nodes/{first['id']}", "node")["cluster_id"] == ""
    assert api.show("/clusters/web", "cluster")["desired_capacity"] == 1
    assert len(api.groups.servers()) == 2
    done = api.act(group, "replace_nodes", {"nodes": {second["id"]: first["id"]}})
    assert done["status"] == "SUCCEEDED"
    (member,) = api.show("/nodes?cluster_id=web", "nodes")
    assert member["physical_id"] == first["physical_id"]
    api.act(group, "add_nodes", {"nodes": [second["id"]]})
    assert len(api.show("/nodes?cluster_id=web", "nodes")) == 2
    assert api.ask("DELETE", f"/nodes/{second['id']}")[0] == 202
    api.groups.settled(group, 1)
    assert api.show("/clusters/web", "cluster")["desired_capacity"] == 1


@pytest.mark.parametrize(
    "path",
    [
        *("/profiles/{profile}", "/clusters/{group}", "/nodes/{node}", "/policies/{policy}"),
        *("/receivers/{receiver}", "/actions/{action}", "/events/{action}"),
        *("/clusters/{group}/policies", "/clusters/{group}/explanation"),
    ],
)
def test_other_projects_see_nothing(api: ClusteringApi, path: str) -> None:
    group = api.cluster(1)
    spec = {"type": "senlin.policy.deletion", "version": "1.0", "properties": {}}
    _, policy = api.ask("POST", "/policies", {"policy": {"name": "p", "spec": spec}})
    asked = {"name": "c", "type": "webhook", "cluster_id": "web", "action": "CLUSTER_CHECK"}
    _, receiver = api.ask("POST", "/receivers", {"receiver": asked})
    named = {
        "group": group,
        "profile": api.show("/clusters/web", "cluster")["profile_id"],
        "node": api.groups.members()[0].id,
        "policy": policy["policy"]["id"],
        "receiver": receiver["receiver"]["id"],
        "action": api.show("/actions", "actions")[0]["id"],
    }
    filled = path.format(**named)
    assert api.ask("GET", filled)[0] == 200
    assert api.ask("GET", filled, token=auth.OTHER)[0] == 404
    noun = filled.split("/")[1]
    listed = api.ask("GET", f"/{noun}", token=auth.OTHER)
    assert listed == (200, {noun: []})
    assert api.ask("GET", f"/{noun}?global_project=True", token=auth.OTHER)[0] == 403
    bodies = {"profiles": "profile", "clusters": "cluster", "nodes": "node"}
    if noun in bodies and filled.count("/") == 2:
        changed = {bodies[noun]: {"name": "mine"}}
        assert api.ask("PATCH", filled, changed, token=auth.OTHER)[0] == 404
        assert api.ask("DELETE", filled, token=auth.OTHER)[0] == 404
    if noun == "clusters":
        action = {"scale_out": {"count": 1}}
        assert api.ask("POST", f"/clusters/{group}/actions", action, token=auth.OTHER)[0] == 404
    assert len(api.groups.servers()) == 1


@pytest.mark.parametrize("noun", ["profile", "cluster", "node", "receiver"])
@pytest.mark.parametrize("changed", [{}, {"name": None}])
def test_an_update_of_nothing_is_refused(
    api: ClusteringApi, noun: str, changed: dict[str, Any]
) -> None:
    """As by Senlin."""
    webhook = {"type": "webhook", "action": "CLUSTER_SCALE_OUT"}
    group = api.cluster(1)
    profile = api.show(f"/clusters/{group}", "cluster")["profile_id"]
    receiver = {"receiver": {"name": "alarm", "cluster_id": group, **webhook}}
    receiver_id = api.ask("POST", "/receivers", receiver)[1]["receiver"]["id"]
    node = api.ask("GET", "/nodes")[1]["nodes"][0]["id"]
    ids = {"profile": profile, "cluster": group, "node": node, "receiver": receiver_id}
    before = api.ask("GET", f"/{noun}s/{ids[noun]}")
    status, answer = api.ask("PATCH", f"/{noun}s/{ids[noun]}", {noun: changed})
    assert (status, answer["error"]["message"]) == (400, "No property needs an update.")
    if noun == "cluster":
        same = {noun: {"profile_id": profile}}
        assert api.ask("PATCH", f"/clusters/{group}", same)[0] == 400
    assert api.ask("GET", f"/{noun}s/{ids[noun]}") == before


def test_readers_change_nothing(api: ClusteringApi) -> None:
    group = api.cluster(1)
    for method, path, body in (
        ("POST", "/profiles", {"profile": {"name": "x", "spec": SPEC}}),
        ("POST", f"/clusters/{group}/actions", {"scale_out": {"count": 1}}),
        ("DELETE", f"/clusters/{group}", None),
    ):
        assert api.ask(method, path, body, token=auth.READER)[0] == 403
    assert api.ask("GET", f"/clusters/{group}", token=auth.READER)[0] == 200


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"desired_capacity": 9}, "greater than the specified max_size"),
        ({"min_size": 3, "desired_capacity": 1}, "less than the specified min_size"),
        ({"min_size": 4, "max_size": 3}, "less than the specified min_size"),
        ({"profile_id": "nobody"}, "could not be found"),
        ({"config": {"micronova.at_once": "many"}}, "must be a number from 1 to 50"),
        ({"config": {"micronova.max_surge": 0}}, "can't both be 0"),
        ({"config": {"micronova.speed": 1}}, "There is no option"),
        ({"timeout": 5}, "timeout must be from"),
        ({"name": " "}, ""),
        ({"nonsense": 1}, ""),
    ],
)
def test_a_cluster_that_can_not_be_is_refused(
    api: ClusteringApi, changes: dict[str, Any], words: str
) -> None:
    asked = {"name": "x", "profile_id": api.profile(), "desired_capacity": 1, "max_size": 5}
    status, answer = api.ask("POST", "/clusters", {"cluster": {**asked, **changes}})
    assert status == 400, answer
    assert words in answer["error"]["message"]
    assert not api.groups.members()


@pytest.mark.parametrize(
    ("properties", "status"),
    [
        ({"flavor": "nobody"}, 400),
        ({"image": "nobody"}, 400),
        ({"networks": [{"network": "nobody"}]}, 400),
        ({"networks": [{"port": "x"}]}, 400),
        ({"networks": "x"}, 400),
        ({"key_name": "nobody"}, 400),
        ({"adminPass": "secret"}, 400),
        ({"colour": "red"}, 400),
        ({"metadata": "x"}, 400),
        ({"security_groups": 5}, 400),
        ({"scheduler_hints": {"micronova:cluster": ""}}, 400),
        ({"scheduler_hints": {"micronova:wait": "soon"}}, 400),
    ],
)
def test_a_profile_that_can_not_be_is_refused(
    api: ClusteringApi, properties: dict[str, Any], status: int
) -> None:
    spec = {**SPEC, "properties": {**SPEC["properties"], **properties}}  # type: ignore[dict-item]
    body = {"profile": {"name": "x", "spec": spec}}
    assert api.ask("POST", "/profiles", body)[0] == status
    assert api.ask("POST", "/profiles/validate", body)[0] == status
    assert api.show("/profiles", "profiles") == []


def test_what_is_not_supported_says_so(api: ClusteringApi) -> None:
    group = api.cluster(0)
    other = {**SPEC, "type": "os.heat.stack"}
    spec = {"type": "senlin.policy.scaling", "version": "1.0", "properties": {}}
    for method, path, body in (
        ("POST", "/profiles", {"profile": {"name": "x", "spec": other}}),
        ("POST", "/policies", {"policy": {"name": "x", "spec": spec}}),
        ("POST", "/nodes/adopt", {"identity": "x"}),
        ("POST", f"/clusters/{group}/ops", {"reboot": {}}),
        ("GET", f"/clusters/{group}/attrs/x", None),
        ("POST", "/receivers", {"receiver": {"name": "x", "type": "message"}}),
    ):
        status, answer = api.ask(method, path, body)
        assert (status, path) == (501, path)
        assert answer["error"]["message"].endswith(
            (".", "options micronova.max_surge and others.")
        )


def test_an_open_circuit_is_explained(api: ClusteringApi) -> None:
    from tests.functional.conductor.test_groups import hasten_all

    api.groups.agents.broken = lambda _: True
    asked = {"name": "web", "profile_id": api.profile(), "desired_capacity": 3, "max_size": 5}
    _, made = api.ask("POST", "/clusters", {"cluster": asked})
    group = made["cluster"]["id"]
    hasten_all(api.groups, group, lambda: api.groups.group(group).halted is not None)
    api.groups.settled(group, 0, "ERROR")
    # A back-off of before counts no more.
    pauses = schema.scaling_groups.update().values(not_before=clock.after(300))
    api.groups.world.conductor.store.run(lambda c: c.execute(pauses))
    said = api.show("/clusters/web/explanation", "explanation")["sentences"]
    assert said[0] == "0 of 3 servers work."
    assert said[1].startswith("Its circuit is open: 5 creations in a row failed")
    assert not [one for one in said if "next creation" in one]
    assert "micronova group recover" in said[2]


def test_a_quota_bounds_groups(api: ClusteringApi) -> None:
    assert api.show("/quotas/demo", "quota") == {"groups": {"limit": 10, "in_use": 0}}
    assert api.ask("PUT", "/quotas/demo", {"quota": {"groups": 1}})[0] == 403
    assert api.ask("GET", "/quotas/demo", token=auth.OTHER)[0] == 403
    status, answer = api.ask("PUT", "/quotas/demo", {"quota": {"groups": 1}}, token=auth.ADMIN)
    assert (status, answer["quota"]["groups"]["limit"]) == (200, 1)
    api.cluster(0)
    asked = {"name": "two", "profile_id": "small", "desired_capacity": 0}
    status, answer = api.ask("POST", "/clusters", {"cluster": asked})
    assert status == 403
    assert answer["error"]["message"].startswith("Quota exceeded for groups: Requested 1")
    assert api.show("/quotas/demo", "quota") == {"groups": {"limit": 1, "in_use": 1}}
    assert api.ask("DELETE", "/quotas/demo")[0] == 403
    for _ in range(2):
        assert api.ask("DELETE", "/quotas/demo", token=auth.ADMIN)[0] == 204
    assert api.show("/quotas/demo", "quota") == {"groups": {"limit": 10, "in_use": 1}}


def test_what_an_administrator_asks_is_done_for_the_group_s_maker(api: ClusteringApi) -> None:
    group = api.cluster(1)
    answer = api.answer(
        "POST",
        f"/v1/clusters/{group}/actions",
        {"scale_out": {"count": 1}},
        token=auth.ADMIN,
    )
    assert answer.status_code == 202, answer.text
    api.groups.settled(group, 2)
    owners = {(one.project_id, one.user_id) for one in api.groups.servers().values()}
    assert owners == {("demo", "demo")}
    assert {one.project_id for one in api.groups.members()} == {"demo"}


def test_an_update_is_paused_and_goes_on_and_is_reverted(api: ClusteringApi) -> None:
    group = api.cluster(2)
    first = api.groups.group(group).profile_id
    assert api.ask("POST", f"/clusters/{group}/actions", {"micronova:pause": {}})[0] == 409
    api.groups.agents.holds = True
    newer = api.profile("newer", metadata={"release": "2"})
    api.ask("PATCH", f"/clusters/{group}", {"cluster": {"profile_id": newer}})
    api.world._wait(lambda: api.groups.agents.held, bool)
    status, _ = api.ask("POST", f"/clusters/{group}/actions", {"micronova:pause": {}})
    assert status == 202
    api.groups.agents.holds = False
    api.groups.agents.answer(api.groups.agents.held.pop())
    # The new server is there, and no former one leaves.
    api.groups.settled(group, 3)
    reason = "Paused: 2 members are of another profile."
    assert api.show("/clusters/web", "cluster")["status_reason"] == reason
    api.ask("POST", f"/clusters/{group}/actions", {"micronova:resume": {}})
    api.groups.settled(group, 2)
    assert {one.profile_id for one in api.groups.members()} == {newer}
    api.ask("POST", f"/clusters/{group}/actions", {"micronova:roll_back": {}})
    api.world._wait(
        lambda: {one.profile_id for one in api.groups.members()}, lambda found: found == {first}
    )
    api.groups.settled(group, 2)
    assert {one.meta.get("release") for one in api.groups.servers().values()} == {None}


def test_servers_that_stop_are_started_and_locked_ones_left_alone(api: ClusteringApi) -> None:
    group = api.cluster(2)
    first, second = (one.server_uuid for one in api.groups.members())
    api.world.ctxt.project_id = api.world.ctxt.user_id = "demo"
    lock.lock(api.world.conductor.cloud, api.world.ctxt, second, None)
    for uuid in (first, second):
        ctxt = internal()
        operation = api.world.conductor.accept.act(ctxt, uuid, "stop")
        assert operation is not None
        api.world.conductor.runner.submit(operation)
    api.world._wait(lambda: api.groups.begun("start"), lambda count: count == 1)
    api.world.until(first, "active")
    api.world.until(second, "stopped")
    api.world._wait(lambda: api.groups.group(group).status, lambda status: status == "WARNING")
    lock.unlock(api.world.conductor.cloud, api.world.ctxt, second, override=False)
    api.groups.settled(group, 2)


def test_uneven_zones_are_explained(api: ClusteringApi) -> None:
    group = api.cluster(2, config={"micronova.zones": "nova", "micronova.max_surge": 1})
    config = {"micronova.zones": "nova,mars", "micronova.max_surge": 1}
    assert api.ask("PATCH", f"/clusters/{group}", {"cluster": {"config": config}})[0] == 202
    # No host is in the other zone: nothing is tried.
    api.groups.settled(group, 2)
    seen = api.show(f"/clusters/{group}/explanation", "explanation")
    (sentence,) = (one for one in seen["sentences"] if "unevenly" in one)
    assert sentence.startswith("Its servers are spread unevenly over its zones: nova 2, mars 0.")
    assert sentence.endswith("where hosts of the other zones work and have room.")

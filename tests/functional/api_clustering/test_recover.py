"""How nodes and clusters are recovered: Senlin's parameters."""

from __future__ import annotations

from typing import Any

import pytest

from conductor.servers.record import lock
from db import schema
from tests.fixtures import auth
from tests.functional.api_clustering.conftest import ClusteringApi
from tests.functional.conductor.test_groups import Groups


def recover(api: ClusteringApi, path: str, values: Any) -> Any:
    """How a recovery ended."""
    status, begun = api.ask("POST", f"{path}/actions", {"recover": values})
    assert status == 202, begun
    api.groups.ended(int(begun["action"]))
    return api.show(f"/actions/{begun['action']}", "action")


def begun(groups: Groups, server: str) -> list[str]:
    """The operations about a server after its creation."""
    rows = [one for one in groups.world.rows(schema.operations) if one.resource_id == server]
    return [one.action for one in rows][1:]


@pytest.mark.parametrize(
    ("values", "action"),
    [
        ({"operation": "REBOOT"}, "reboot-hard"),
        ({"operation": "reboot", "operation_params": {"type": "SOFT"}}, "reboot"),
        ({"operation": "REBUILD", "check": False}, "rebuild"),
        ({"operation": "RECREATE"}, "delete"),
        ({"operation": None, "delete_timeout": None, "force_recreate": False}, "delete"),
        ({}, "delete"),
        ({"check": True}, None),
        ({"check": True, "operation": "REBOOT"}, None),
    ],
)
def test_a_node_is_recovered_as_asked(
    api: ClusteringApi, values: dict[str, Any], action: str | None
) -> None:
    group = api.cluster(2)
    member, other = api.groups.members()
    assert recover(api, f"/nodes/{member.id}", values)["status"] == "SUCCEEDED"
    uuids = api.groups.settled(group, 2)
    assert begun(api.groups, member.server_uuid) == ([] if action is None else [action])
    assert (uuids[0] == member.server_uuid) is (action != "delete")
    assert uuids[1] == other.server_uuid
    assert not begun(api.groups, other.server_uuid)


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"operation": "DANCE"}, 400),
        ({"operation": 7}, 400),
        ({"nonsense": 1}, 400),
        ({"check": "perhaps"}, 400),
        ({"operation": "REBOOT", "operation_params": {"type": "GENTLE"}}, 400),
        ({"operation": "REBOOT", "operation_params": {"fence_compute": True}}, 501),
        ({"operation": "RECREATE", "operation_params": {"fence_compute": True}}, 501),
        ({"operation_params": {"type": "SOFT"}}, 501),
        ({"delete_timeout": 5}, 501),
        ({"force_recreate": True}, 501),
    ],
)
def test_what_a_recovery_can_t_be(api: ClusteringApi, values: dict[str, Any], status: int) -> None:
    api.cluster(1)
    (member,) = api.groups.members()
    for path in (f"/nodes/{member.id}", "/clusters/web"):
        only_of_nodes = {"delete_timeout", "force_recreate"}.intersection(values)
        wanted = 400 if only_of_nodes and "clusters" in path else status
        found, answer = api.ask("POST", f"{path}/actions", {"recover": values})
        assert found == wanted, answer
        assert found == 400 or answer["error"]["message"].endswith(".")
    assert not begun(api.groups, member.server_uuid)


def fail(api: ClusteringApi) -> list[str]:
    """All servers are in ERROR, though they have run, and their group has not seen it yet."""
    broken = schema.servers.update().values(vm_state="error")
    api.world.conductor.store.run(lambda c: c.execute(broken))
    return sorted(api.groups.servers())


@pytest.mark.parametrize(
    ("values", "actions"),
    [
        ({"operation": "REBOOT", "operation_params": {"type": "HARD"}}, ["reboot-hard"]),
        ({"operation": "rebuild", "check": True, "check_capacity": "True"}, ["rebuild"]),
        ({"operation": "RECREATE"}, ["delete"]),
        ({"check": False, "operation": None}, ["delete"]),
        (None, ["delete"]),
    ],
)
def test_a_cluster_is_recovered_as_asked(
    api: ClusteringApi, values: dict[str, Any] | None, actions: list[str]
) -> None:
    group = api.cluster(2)
    tried = schema.scaling_members.update().values(recoveries=2)
    api.world.conductor.store.run(lambda c: c.execute(tried))
    broken = fail(api)
    assert recover(api, "/clusters/web", values)["status"] == "SUCCEEDED"
    after = sorted(api.groups.settled(group, 2))
    assert [begun(api.groups, one) for one in broken] == [actions] * 2
    assert (after == broken) is (actions != ["delete"])
    # What is well is left alone.
    assert recover(api, "/clusters/web", {"operation": "REBOOT"})["status"] == "SUCCEEDED"
    assert sorted(api.groups.settled(group, 2)) == after


def test_a_node_that_does_not_work_is_repaired_after_a_look(api: ClusteringApi) -> None:
    group = api.cluster(1)
    (member,) = api.groups.members()
    fail(api)
    recover(api, f"/nodes/{member.id}", {"check": True, "operation": "REBUILD"})
    assert api.groups.settled(group, 1) == [member.server_uuid]
    assert begun(api.groups, member.server_uuid) == ["rebuild"]
    assert api.groups.members()[0].repaired_at is not None
    fail(api)
    recover(api, f"/nodes/{member.id}", {"check": True})
    assert api.groups.settled(group, 1) != [member.server_uuid]


def test_a_locked_node_is_not_repaired(api: ClusteringApi) -> None:
    api.cluster(1)
    (member,) = api.groups.members()
    api.world.ctxt.project_id = api.world.ctxt.user_id = "demo"
    lock.lock(api.world.conductor.cloud, api.world.ctxt, member.server_uuid, None)
    asked = {"recover": {"operation": "REBOOT"}}
    assert api.ask("POST", f"/nodes/{member.id}/actions", asked)[0] == 409
    assert begun(api.groups, member.server_uuid) == ["lock"]


def test_a_node_in_no_cluster(api: ClusteringApi) -> None:
    asked = {"node": {"name": "alone", "profile_id": api.profile()}}
    answer = api.answer("POST", "/v1/nodes", asked)
    number = answer.headers["location"].rpartition("/")[2]
    api.groups.ended(int(number))
    shown = api.show(f"/actions/{number}", "action")
    assert (shown["action"], shown["status"]) == ("NODE_CREATE", "SUCCEEDED")
    node = api.show("/nodes/alone", "node")
    uuid = node["physical_id"]
    assert shown["target"] == node["id"]
    for values in ({"operation": "REBOOT"}, {"operation": "REBOOT", "check": True}):
        assert recover(api, "/nodes/alone", values)["status"] == "SUCCEEDED"
        assert begun(api.groups, uuid) == ["reboot-hard"]
    body = {"recover": {}}
    assert api.ask("POST", "/nodes/alone/actions", body)[0] == 409
    assert api.ask("POST", "/nodes/alone/actions", body, token=auth.OTHER)[0] == 404

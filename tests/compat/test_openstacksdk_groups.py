"""openstacksdk's clustering proxy, as a project's member: the life of a group."""

from __future__ import annotations

from typing import Any

import openstack.exceptions
import pytest
import requests

from tests.compat.conftest import Site
from tests.functional.waiting import eventually


@pytest.fixture
def member(site: Site) -> Any:
    return site.cloud.connection("micronova-demo")


def spec(site: Site, **properties: Any) -> dict[str, Any]:
    """A profile's spec, by names."""
    wanted = {"flavor": site.flavor, "image": site.image, **properties}
    return {"type": "os.nova.server", "version": "1.0", "properties": wanted}


def settled(groups: Any, name: str, size: int, status: str = "ACTIVE") -> Any:
    """The cluster once it has so many nodes that work."""

    def look() -> Any:
        found = groups.get_cluster(name)
        nodes = [one.status for one in groups.nodes(cluster_id=found.id)]
        return found if (found.status, nodes) == (status, ["ACTIVE"] * size) else None

    return eventually(look, 120)


def test_the_life_of_a_group(site: Site, member: Any, name: str) -> None:
    groups, servers = member.clustering, member.compute
    profile = groups.create_profile(name=name, spec=spec(site))
    cluster = groups.create_cluster(
        name=name, profile_id=profile.id, min_size=0, max_size=8, desired_capacity=3
    )
    cluster = settled(groups, name, 3)
    assert (cluster.desired_capacity, cluster.profile_name) == (3, name)
    action = groups.resize_cluster(cluster, adjustment_type="EXACT_CAPACITY", number=6)
    settled(groups, name, 6)
    done = eventually(lambda: _succeeded(groups, action["action"]), 30)
    assert done.action == "CLUSTER_RESIZE"
    # A member that its user deletes comes back.
    lost = next(iter(groups.nodes(cluster_id=cluster.id)))
    servers.delete_server(lost.physical_id)
    eventually(lambda: _replaced(groups, lost), 60)
    settled(groups, name, 6)
    if site.simulated:
        _lose_a_node(site, groups, cluster)
        settled(groups, name, 6)
    # Fewer, by a policy.
    properties = {"criteria": "YOUNGEST_FIRST"}
    policy = groups.create_policy(
        name=name,
        spec={"type": "senlin.policy.deletion", "version": "1.1", "properties": properties},
    )
    groups.attach_policy_to_cluster(cluster, policy.id, enabled=True)
    (bound,) = groups.cluster_policies(cluster)
    assert (bound.policy_id, bound.is_enabled) == (policy.id, True)
    groups.scale_in_cluster(cluster, 4)
    settled(groups, name, 2)
    # Another profile.
    before = {one.physical_id for one in groups.nodes(cluster_id=cluster.id)}
    newer = groups.create_profile(name=f"{name}-2", spec=spec(site, metadata={"release": "2"}))
    groups.update_cluster(cluster, profile_id=newer.id)
    eventually(lambda: _all_of(groups, cluster, newer, 2), 120)
    cluster = settled(groups, name, 2)
    after = [servers.get_server(one.physical_id) for one in groups.nodes(cluster_id=cluster.id)]
    assert not before & {one.id for one in after}
    assert {one.metadata["release"] for one in after} == {"2"}
    # An alert scales it.
    receiver = groups.create_receiver(
        name=name, type="webhook", cluster_id=cluster.id, action="CLUSTER_SCALE_OUT"
    )
    url = receiver.channel["alarm_url"]
    answer = requests.post(url, json={"alerts": []}, timeout=30)
    assert answer.status_code == 202, answer.text
    settled(groups, name, 3)
    groups.delete_receiver(receiver)
    assert requests.post(url, timeout=30).status_code == 404
    groups.detach_policy_from_cluster(cluster, policy.id)
    groups.delete_policy(policy.id)
    # Deleted with all that it had.
    mine = {one.physical_id for one in groups.nodes(cluster_id=cluster.id)}
    groups.delete_cluster(cluster)
    groups.wait_for_delete(cluster, interval=0.5, wait=60)
    assert not mine & {one.id for one in servers.servers()}
    for one in (profile, newer):
        groups.delete_profile(one.id)
    assert not list(groups.nodes())
    assert "CLUSTER_DELETE" in {one.action for one in groups.actions()}
    assert {one.cluster_id for one in groups.events(cluster_id=cluster.id)} == {cluster.id}


def _lose_a_node(site: Site, groups: Any, cluster: Any) -> None:
    """Lose a node for good: its members are replaced, and it comes back all the same."""
    admin = site.cloud.connection("micronova-admin").compute
    hosts = {one.id: one.compute_host for one in admin.servers(all_projects=True)}
    before = {one.index: one.physical_id for one in groups.nodes(cluster_id=cluster.id)}
    lost = hosts[before[1]]
    assert set(before.values()) - {one for one, host in hosts.items() if host == lost}
    order = site.cloud.control("POST", "faults", action="node-down", node=lost)
    eventually(lambda: groups.get_cluster(cluster.id).status == "WARNING", 60)
    assert "can't be reached" in groups.get_cluster(cluster.id).status_reason
    service = next(one for one in admin.services(binary="nova-compute") if one.host == lost)
    admin.update_service_forced_down(service, forced=True)
    gone = {one for one in before.values() if hosts[one] == lost}
    eventually(lambda: not gone & _servers_of(groups, cluster), 120)
    after = {one.index: one.physical_id for one in groups.nodes(cluster_id=cluster.id)}
    assert after.keys() == before.keys()
    site.cloud.control("DELETE", "faults", id=order["id"])
    admin.update_service_forced_down(service, forced=False)
    # What was left there is removed.
    eventually(lambda: not gone & {one.id for one in admin.servers(all_projects=True)}, 120)


def _servers_of(groups: Any, cluster: Any) -> set[str]:
    nodes = list(groups.nodes(cluster_id=cluster.id))
    return {one.physical_id for one in nodes if one.status == "ACTIVE"}


def _succeeded(groups: Any, number: str) -> Any:
    found = groups.get_action(number)
    return found if found.status == "SUCCEEDED" else None


def _replaced(groups: Any, lost: Any) -> bool:
    found = groups.get_node(lost.id)
    assert found.index == lost.index
    return found.physical_id not in ("", lost.physical_id)


def _all_of(groups: Any, cluster: Any, profile: Any, size: int) -> bool:
    nodes = list(groups.nodes(cluster_id=cluster.id))
    return [(one.profile_id, one.status) for one in nodes] == [(profile.id, "ACTIVE")] * size


def test_what_there_is(site: Site, member: Any) -> None:
    groups = member.clustering
    assert {one.name for one in groups.profile_types()} == {"os.nova.server-1.0"}
    assert "flavor" in groups.get_profile_type("os.nova.server-1.0").schema
    assert groups.get_policy_type("senlin.policy.deletion-1.1").schema["criteria"]
    assert groups.get_build_info().api["revision"]
    assert groups.validate_profile(spec=spec(site)).spec["type"] == "os.nova.server"
    with pytest.raises(openstack.exceptions.BadRequestException):
        groups.validate_profile(spec=spec(site, flavor="nobody"))


@pytest.mark.long
def test_a_member_whose_guest_does_not_answer(site: Site, member: Any, name: str) -> None:
    """It is replaced, by what the agent of its host sees of the agent in its guest."""
    if not site.simulated:
        pytest.skip("there are no guests")
    groups = member.clustering
    profile = groups.create_profile(name=name, spec=spec(site))
    checks = {"agent": "true", "interval": "5", "threshold": "2", "grace": "0"}
    cluster = groups.create_cluster(
        name=name,
        profile_id=profile.id,
        desired_capacity=2,
        config={f"micronova.health_{key}": value for key, value in checks.items()},
    )
    settled(groups, name, 2)
    first, second = sorted(groups.nodes(cluster_id=cluster.id), key=lambda one: one.index)
    assert groups.get_node(first.id).data["health"]["result"] == "well"
    clusters = site.cloud.control("GET", "state")["clusters"]
    vmid = next(
        one["vmid"]
        for cluster in clusters
        for one in cluster["vms"]
        if first.physical_id in one["config"].get("description", "")
    )
    order = site.cloud.control("POST", "faults", action="guest-silent", vmid=vmid)
    eventually(lambda: _replaced(groups, first), 120)
    site.cloud.control("DELETE", "faults", id=order["id"])
    settled(groups, name, 2)
    assert groups.get_node(second.id).physical_id == second.physical_id
    groups.delete_cluster(cluster)
    groups.wait_for_delete(cluster, interval=0.5, wait=60)
    groups.delete_profile(profile.id)

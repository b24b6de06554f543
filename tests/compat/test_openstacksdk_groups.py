"""openstacksdk's clustering proxy, as a project's member: the life of a group."""

from __future__ import annotations

import datetime
from typing import Any

import openstack.exceptions
import pytest
import requests

from common import clock
from tests.compat.conftest import Site
from tests.functional.waiting import eventually

#: for so long a server must not have changed before a look at its VM counts
SETTLE_SECONDS = 30


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
    # As by clustering_default_microversion in clouds.yaml: nodes are replaced since 1.3.
    groups.default_microversion = "1.14"
    # Create 3.
    profile = groups.create_profile(name=name, spec=spec(site))
    cluster = groups.create_cluster(
        name=name, profile_id=profile.id, min_size=0, max_size=8, desired_capacity=3
    )
    cluster = settled(groups, name, 3)
    assert (cluster.desired_capacity, cluster.profile_name) == (3, name)
    # Scale to 6.
    action = groups.resize_cluster(cluster, adjustment_type="EXACT_CAPACITY", number=6)
    settled(groups, name, 6)
    done = eventually(lambda: _succeeded(groups, action["action"]), 30)
    assert done.action == "CLUSTER_RESIZE"
    # Lose a server to its user, one to somebody at Proxmox VE, and a node.
    lost = next(iter(groups.nodes(cluster_id=cluster.id)))
    servers.delete_server(lost.physical_id)
    eventually(lambda: _replaced(groups, lost), 60)
    settled(groups, name, 6)
    if site.simulated:
        _destroy_a_vm(site, member, cluster)
        settled(groups, name, 6)
        _lose_a_node(site, groups, cluster)
        settled(groups, name, 6)
    policy = _shrink_by_policy(groups, cluster)
    newer = _replace_by_a_new_image(site, member, cluster)
    _scale_by_webhook(groups, cluster)
    _exchange_nodes(groups, cluster, newer)
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


def _shrink_by_policy(groups: Any, cluster: Any) -> Any:
    """Shrink to two members, as a policy says; return that."""
    properties = {"criteria": "YOUNGEST_FIRST"}
    policy = groups.create_policy(
        name=cluster.name,
        spec={"type": "senlin.policy.deletion", "version": "1.1", "properties": properties},
    )
    groups.attach_policy_to_cluster(cluster, policy.id, enabled=True)
    (bound,) = groups.cluster_policies(cluster)
    assert (bound.policy_id, bound.is_enabled) == (policy.id, True)
    groups.scale_in_cluster(cluster, 4)
    settled(groups, cluster.name, 2)
    return policy


def _replace_by_a_new_image(site: Site, member: Any, cluster: Any) -> Any:
    """Have both members replaced by those of a profile with another image; return that."""
    groups, servers = member.clustering, member.compute
    before = {one.physical_id for one in groups.nodes(cluster_id=cluster.id)}
    image = next(iter(servers.images(name="cirros")))
    wanted = spec(site, image="cirros", metadata={"release": "2"})
    newer = groups.create_profile(name=f"{cluster.name}-2", spec=wanted)
    groups.update_cluster(cluster, profile_id=newer.id)
    eventually(lambda: _all_of(groups, cluster, newer, 2), 120)
    settled(groups, cluster.name, 2)
    after = [servers.get_server(one.physical_id) for one in groups.nodes(cluster_id=cluster.id)]
    assert not before & {one.id for one in after}
    assert {(one.metadata["release"], one.image.id) for one in after} == {("2", image.id)}
    return newer


def _scale_by_webhook(groups: Any, cluster: Any) -> None:
    """An alert scales it to three members."""
    receiver = groups.create_receiver(
        name=cluster.name, type="webhook", cluster_id=cluster.id, action="CLUSTER_SCALE_OUT"
    )
    url = receiver.channel["alarm_url"]
    answer = requests.post(url, json={"alerts": []}, timeout=30)
    assert answer.status_code == 202, answer.text
    settled(groups, cluster.name, 3)
    groups.delete_receiver(receiver)
    assert requests.post(url, timeout=30).status_code == 404


def _exchange_nodes(groups: Any, cluster: Any, profile: Any) -> None:
    """A node of no cluster is added, leaves with its server, and takes another one's place."""
    node = groups.create_node(name=f"{cluster.name}-alone", profile_id=profile.id)
    node = eventually(lambda: _active(groups, node), 60)
    groups.add_nodes_to_cluster(cluster, [node.id])
    settled(groups, cluster.name, 4)
    assert groups.get_node(node.id).cluster_id == cluster.id
    groups.remove_nodes_from_cluster(cluster, [node.id], destroy_after_deletion=False)
    settled(groups, cluster.name, 3)
    assert _active(groups, node).cluster_id == ""
    former = next(iter(groups.nodes(cluster_id=cluster.id)))
    groups.replace_nodes_in_cluster(cluster, {former.id: node.id})
    settled(groups, cluster.name, 3)
    nodes = {one.id: one.physical_id for one in groups.nodes(cluster_id=cluster.id)}
    assert nodes[node.id] == node.physical_id and former.id not in nodes
    groups.delete_node(former.id)
    groups.wait_for_delete(former, interval=0.5, wait=60)


def _active(groups: Any, node: Any) -> Any:
    found = groups.get_node(node.id)
    return found if found.status == "ACTIVE" else None


def _destroy_a_vm(site: Site, member: Any, cluster: Any) -> None:
    """Somebody destroys the VM of a member in Proxmox VE: it gets another one."""
    groups = member.clustering
    lost = next(iter(groups.nodes(cluster_id=cluster.id)))

    def settled_down() -> bool:
        # Looks at its VM count: they would later anyway.
        changed = clock.parse(member.compute.get_server(lost.physical_id).updated_at)
        return clock.utcnow() - changed > datetime.timedelta(seconds=SETTLE_SECONDS)

    eventually(settled_down, 2 * SETTLE_SECONDS, 0.5)
    found = _vm_of(site, lost.physical_id)
    vm = site.proxmox().nodes(found["node"]).qemu(found["vmid"])
    vm.status.stop.post()
    eventually(lambda: vm.status.current.get()["status"] == "stopped", 30)
    vm.delete(purge=1)
    eventually(lambda: _vm_of(site, lost.physical_id) is None, 30)
    eventually(lambda: _replaced(groups, lost), 120)


def _vm_of(site: Site, server_uuid: str) -> Any:
    """The VM of a server in the simulator; None: there is none."""
    clusters = site.cloud.control("GET", "state")["clusters"]
    vms = (one for cluster in clusters for one in cluster["vms"])
    mine = (one for one in vms if server_uuid in one["config"].get("description", ""))
    return next(mine, None)


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
    vmid = _vm_of(site, first.physical_id)["vmid"]
    order = site.cloud.control("POST", "faults", action="guest-silent", vmid=vmid)
    eventually(lambda: _replaced(groups, first), 120)
    site.cloud.control("DELETE", "faults", id=order["id"])
    settled(groups, name, 2)
    assert groups.get_node(second.id).physical_id == second.physical_id
    groups.delete_cluster(cluster)
    groups.wait_for_delete(cluster, interval=0.5, wait=60)
    groups.delete_profile(profile.id)

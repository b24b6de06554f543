"""From the clusters and the record to the decision, with real services."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proxmoxer import ProxmoxAPI

from common import codec, ids
from common.messages.scheduling import Refused
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from db import schema
from tests.chaos.cloud import FLAVOR, IMAGE
from tests.chaos.dressing import CLOUD
from tests.chaos.world import World, world

WRITES = {"proxmox:sim1": {"write_affinity_rules": "true"}}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, WRITES, nodes=3) as running:
        yield running


@pytest.fixture
def root(cloud: World) -> Any:
    """What an administrator of the cluster does; the agent may write rules."""
    simulator = cloud.simulator
    host, _, port = simulator.endpoints[0]["url"].removeprefix("https://").rpartition(":")
    made = ProxmoxAPI(
        host,
        port=int(port),
        user="root@pam",
        password=simulator.password,
        verify_ssl=str(simulator.options.state_dir / "ca.pem"),
    )
    made.access.acl.put(
        path="/",
        roles="PVESysAdmin",
        users="micronova@pve",
        tokens="micronova@pve!agent",
        propagate=0,
    )
    for who in ({"users": "micronova@pve"}, {"tokens": "micronova@pve!agent"}):
        made.access.acl.put(path="/sdn", roles="PVESDNUser", **who)
    return made


def built(cloud: World, name: str, bridge: str = "vmbr0", **more: Any) -> Any:
    """A server's row once its build has ended."""
    specs = more.pop("extra_specs", {})
    request = CreateServers(
        name,
        dataclasses.replace(FLAVOR, extra_specs=specs),
        ids.named("image", IMAGE),
        networks=(RequestedNetwork(ids.named("network", bridge)),),
        **more,
    )
    cloud.client.create_servers(cloud.context(), request)
    return cloud.until(lambda: (row := cloud.named(name)) and row.vm_state != "building" and row)


def facts(cloud: World) -> dict[str, Any]:
    return {row.host: row.facts for row in cloud.rows(schema.hosts.select())}


def refused(cloud: World, server: Any) -> Any:
    """Filter → reason → hosts, of the decision about a server, as it is stored."""
    bodies = [row.body for row in cloud.rows(schema.decisions.select())]
    kept = next(one["refused"] for one in bodies if one["server_uuid"] == server.uuid)
    found: dict[str, dict[str, list[str]]] = {}
    for name, groups in kept.items():
        for host, reason in (
            pair for one in groups for pair in codec.load(Refused, one).reasons()
        ):
            found.setdefault(name, {}).setdefault(reason, []).append(host)
    return found


def test_a_flavor_keeps_to_the_nodes_of_a_rule(cloud: World, root: Any) -> None:
    first = built(cloud, "first")
    root.cluster.ha.resources.post(sid=f"vm:{first.vmid}", state="ignored")
    others = sorted({"pve1", "pve2", "pve3"} - {first.node})
    root.cluster.ha.rules.post(
        rule="gold",
        type="node-affinity",
        resources=f"vm:{first.vmid}",
        nodes=others[0],
        strict=1,
    )
    cloud.until(lambda: all(one["ha_rules"] for one in facts(cloud).values()))
    for number in range(3):
        row = built(cloud, f"gold-{number}", extra_specs={"ha:rule": "gold"})
        assert row.host == others[0]
    nowhere = built(cloud, "lead", extra_specs={"ha:rule": "lead"})
    assert nowhere.vm_state == "error"
    (fault,) = cloud.faults(nowhere.uuid)
    assert fault.message.startswith("None of 3 hosts will do: 3 with rules of high availability")
    (reason,) = refused(cloud, nowhere)["ha_rule"]
    assert reason == "its cluster has 1 HA rule, none called lead"
    assert fault.message.endswith("It would fit with a flavor without ha:rule.")


def test_servers_go_where_their_vnet_is(cloud: World, root: Any) -> None:
    root.cluster.sdn.zones.post(zone="z1", type="simple", nodes="pve1,pve2")
    root.cluster.sdn.vnets.post(vnet="blue", zone="z1")
    order = cloud.simulator.fault(action="no-reload", node="pve2")
    upid = root.cluster.sdn.put()
    task = root.nodes(upid.split(":")[1]).tasks(upid)
    cloud.until(lambda: task.status.get()["status"] == "stopped")
    _look_again(cloud)
    cloud.until(lambda: "blue" in facts(cloud)["pve1"]["bridges"])
    cloud.until(lambda: facts(cloud)["pve3"]["unready_bridges"])
    for number in range(3):
        row = built(cloud, f"blue-{number}", "blue")
        assert (row.vm_state, row.host) == ("active", "pve1")
    elsewhere = built(cloud, "elsewhere", "blue", force_host="pve2")
    assert refused(cloud, elsewhere)["network_reach"] == {
        "vnet blue isn't on the node (zone z1: pending)": ["pve2"]
    }
    cloud.simulator.take_back(order)


def _look_again(cloud: World) -> None:
    """A node's bridges are looked at every five minutes, and when its agent starts."""
    cloud.restart("compute")


def test_a_strict_group_is_a_rule_until_it_is_deleted(cloud: World, root: Any) -> None:
    group = cloud.client.create_server_group(
        cloud.context(), NewServerGroup("project", "user", "g", "anti-affinity", {})
    )
    rows = [built(cloud, f"apart-{number}", server_group=group) for number in range(2)]
    assert {row.vm_state for row in rows} == {"active"}
    [rule] = root.cluster.ha.rules.get()
    assert rule["rule"] == f"micronova-{CLOUD}-{group}"
    assert rule["resources"] == ",".join(f"vm:{row.vmid}" for row in rows)
    events = [
        row
        for row in cloud.rows(schema.operation_events.select())
        if row.name.endswith("affinity")
    ]
    assert [row.result for row in events] == ["Success", "Success"]
    cloud.client.delete_server_group(cloud.context(), group)
    cloud.until(lambda: not root.cluster.ha.rules.get() and not root.cluster.ha.resources.get())


def an_aggregate(cloud: World, host: str, **metadata: str) -> int:
    ctxt = cloud.context()
    number = cloud.client.create_aggregate(ctxt, f"of-{host}", None)
    cloud.client.add_aggregate_host(ctxt, number, host)
    cloud.client.set_aggregate_metadata(ctxt, number, metadata)
    return number


def test_aggregates_keep_hosts_for_projects_images_and_zones(cloud: World) -> None:
    an_aggregate(cloud, "pve1", filter_tenant_id="another")
    an_aggregate(cloud, "pve2", os_distro="windows", availability_zone="az2")
    aggregates = cloud.rows(schema.aggregates.select())
    linux = {"image_properties": {"os_distro": "debian"}}
    for number in range(3):
        assert built(cloud, f"linux-{number}", **linux).host == "pve3"
    zoned = built(cloud, "zoned", availability_zone="az2", **linux)
    assert refused(cloud, zoned)["aggregate_image_properties_isolation"] == {
        "its aggregates take images with os_distro windows, this one has debian": ["pve2"]
    }
    assert built(cloud, "windows", availability_zone="az2").host == "pve2"
    kept = built(cloud, "kept", force_host="pve1")
    assert refused(cloud, kept)["aggregate_multitenancy_isolation"] == {
        "kept for other projects by an aggregate": ["pve1"]
    }
    # Placement has them as aggregates of the hosts' providers.
    for aggregate in aggregates:
        host = aggregate.name.removeprefix("of-")
        cloud.until(lambda host=host, one=aggregate: providers(cloud, one.uuid) == {host})


def providers(cloud: World, aggregate: str) -> set[str]:
    """The hosts that placement offers of an aggregate."""
    names = {provider.uuid: provider.name for provider in cloud.placement.providers()}
    found = cloud.placement.candidates({"VCPU": 1}, member_of=[[aggregate]], limit=10)
    return {names[uuid] for uuid in found.uuids}


def test_images_of_an_aggregate_are_made_ready(cloud: World) -> None:
    number = an_aggregate(cloud, "pve2")
    image = ids.named("image", IMAGE)
    cloud.client.cache_images(cloud.context(), number, [image])
    cloud.until(lambda: image in facts(cloud)["pve2"]["cached_images"])
    # Where it lies ready weighs, among hosts that are as empty.
    assert built(cloud, "quick").host == "pve2"

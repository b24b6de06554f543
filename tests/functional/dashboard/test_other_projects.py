"""What another project has is neither seen nor changed through the pages of a member."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser

SECRET = "another's"


@pytest.fixture(scope="module")
def theirs(three_nodes: EmbeddedCloud) -> Iterator[dict[str, Any]]:
    """One of each thing in the project of the administrators."""
    connection = three_nodes.connection("micronova-admin")
    network, compute, clustering = connection.network, connection.compute, connection.clustering
    lan = network.create_network(name=SECRET)
    subnet = network.create_subnet(network_id=lan.id, ip_version=4, cidr="192.168.9.0/24")
    group = network.create_security_group(name=SECRET)
    apart = compute.create_server_group(name=SECRET, policy="anti-affinity")
    keypair = compute.create_keypair(name=SECRET.replace("'", " "))
    properties = {"flavor": "m1.nano", "image": "cirros", "networks": [{"network": "vmbr0"}]}
    spec = {"type": "os.nova.server", "version": "1.0", "properties": properties}
    profile = clustering.create_profile(name="own", spec=spec)
    scaled = clustering.create_cluster(name=SECRET, profile_id=profile.id, desired_capacity=1)
    eventually(lambda: clustering.get_cluster(scaled).status == "ACTIVE")
    yield {
        "network": lan.id,
        "subnet": subnet.id,
        "group": group.id,
        "rule": group.security_group_rules[0]["id"],
        "server_group": apart.id,
        "cluster": scaled.id,
        "node": next(clustering.nodes()).id,
        "keypair": keypair.name,
    }
    clustering.delete_cluster(scaled)
    eventually(lambda: not list(clustering.clusters()))
    clustering.delete_profile(profile)
    compute.delete_server_group(apart)
    compute.delete_keypair(keypair)
    network.delete_security_group(group)
    network.delete_network(lan)


@pytest.mark.parametrize(
    "path", ["/networks", "/security-groups", "/server-groups", "/keypairs", "/groups"]
)
def test_lists_have_nothing_of_another_project(
    theirs: dict[str, Any], member: Browser, path: str
) -> None:
    member.get(path)
    assert member.status == 200
    assert "another" not in member.parsed.text.replace("another host", "").lower()
    for one in theirs.values():
        assert str(one) not in member.page.text


PAGES = (
    *("/networks/{network}", "/networks/{network}/delete"),
    *("/networks/{network}/subnets/{subnet}/delete",),
    *("/security-groups/{group}", "/security-groups/{group}/delete"),
    "/server-groups/{server_group}/delete",
    "/keypairs/delete?name={keypair}",
    *("/groups/{cluster}", "/groups/{cluster}/replace", "/groups/{cluster}/delete"),
    *("/groups/{cluster}/recover", "/groups/{cluster}/members/{node}/replace"),
)


@pytest.mark.parametrize("path", PAGES)
def test_pages_of_another_projects_things_are_not_found(
    theirs: dict[str, Any], member: Browser, path: str
) -> None:
    member.get(path.format(**theirs))
    assert member.status == 404


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/networks/{network}", {"name": "mine"}),
        ("/networks/{network}/delete", {}),
        ("/networks/{network}/subnets", {"cidr": "192.168.10.0/24"}),
        ("/networks/{network}/subnets/{subnet}/delete", {}),
        ("/security-groups/{group}", {"name": "mine"}),
        ("/security-groups/{group}/rules", {"direction": "ingress", "what": "ssh"}),
        ("/security-groups/{group}/rules/{rule}/delete", {}),
        ("/security-groups/{group}/delete", {}),
        ("/server-groups/{server_group}/delete", {}),
        ("/keypairs/delete", {"name": "{keypair}"}),
        ("/groups/{cluster}/scale", {"desired": "9"}),
        ("/groups/{cluster}/recover", {}),
        ("/groups/{cluster}/roll-back", {}),
        ("/groups/{cluster}/replace", {"image": "x", "flavor": "x"}),
        ("/groups/{cluster}/members/{node}/replace", {}),
        ("/groups/{cluster}/delete", {}),
    ],
)
def test_nothing_of_another_project_is_changed(
    theirs: dict[str, Any],
    member: Browser,
    three_nodes: EmbeddedCloud,
    path: str,
    fields: dict[str, str],
) -> None:
    before = everything(three_nodes)
    sent = {name: value.format(**theirs) for name, value in fields.items()}
    member.post(path.format(**theirs), {"csrf": member.csrf, **sent})
    assert member.status == 404 or "Refused: " in member.parsed.text
    assert everything(three_nodes) == before


def everything(cloud: EmbeddedCloud) -> list[Any]:
    """Return what the administrators' project has."""
    connection = cloud.connection("micronova-admin")
    network, compute, clustering = connection.network, connection.compute, connection.clustering
    mine = {"project_id": connection.current_project_id}
    return [
        [(one.id, one.name) for one in network.networks(**mine)],
        [one.id for one in network.subnets(**mine)],
        [(one.id, one.name, len(one.security_group_rules)) for one in network.security_groups()],
        [one.id for one in compute.server_groups()],
        [one.name for one in compute.keypairs()],
        [(one.id, one.desired_capacity, one.status) for one in clustering.clusters()],
        [(one.id, one.physical_id, one.status) for one in clustering.nodes()],
    ]

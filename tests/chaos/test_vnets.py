"""Networks on SDN vnets in a whole cloud: whatever dies, each gets there, or nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.errors import Conflict
from common.resources import vnets
from conductor.rpc.networks.networks import NewNetwork, NewSubnet
from db import schema
from simulator.state.sdn_config import Vnet, Zone
from tests.chaos import dressing
from tests.chaos.world import World, world

OPTIONS = {"networks": {"subnets": "vmbr0=10.20.0.0/16", "tenant_vnets": "*:tenants:5000-5001"}}


class Site:
    """A cloud whose cluster has a VXLAN zone."""

    def __init__(self, cloud: World) -> None:
        self.cloud = cloud
        self.pve = cloud.simulator.cluster()

    def network(self, name: str = "mine") -> str:
        [made] = self.cloud.client.create_networks(
            self.cloud.context(), [NewNetwork("project", name)]
        )
        return made

    def row(self, network_id: str) -> Any:
        query = schema.networks.select().where(schema.networks.c.id == network_id)
        return next(iter(self.cloud.rows(query)), None)

    def becomes(self, network_id: str, status: str) -> Any:
        return self.cloud.until(
            lambda: (row := self.row(network_id)) and row.status == status and row
        )

    def delete(self, network_id: str) -> None:
        self.cloud.client.delete_network(self.cloud.context(), network_id)

    def vnets(self) -> dict[str, dict[str, str]]:
        """What is configured, and runs: name → options."""
        with self.pve.turn():
            assert not self.pve.sdn.pending
            return {name: one.options for name, one in self.pve.sdn.running_vnets.items()}

    def nothing_left(self) -> None:
        self.cloud.until(lambda: not self.cloud.open_operations())
        assert self.vnets() == {}
        assert self.cloud.rows(schema.vnets.select()) == []
        kept = self.cloud.rows(sa.select(schema.networks.c.name))
        assert {one.name for one in kept} == {"vmbr0", "vmbr1"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with world(tmp_path, OPTIONS) as cloud:
        dressing.add_zone(cloud.simulator.cluster(), cloud.simulator.token)
        zones = schema.hosts.c.facts["zones"]
        cloud.until(lambda: all(one == ["tenants"] for (one,) in cloud.rows(sa.select(zones))))
        yield Site(cloud)


def test_a_server_on_a_network_and_nothing_is_left(site: Site) -> None:
    cloud = site.cloud
    network = site.network()
    made = site.row(network)
    assert (made.status, made.zone, made.vni, made.mtu) == ("BUILD", "tenants", 5000, 1450)
    attributes = {"cidr": "192.168.7.0/24", "ip_version": 4}
    cloud.client.create_subnets(
        cloud.context(), [NewSubnet("project", network, attributes=attributes)]
    )
    # It waits for its network.
    cloud.create("web", network=network)
    site.becomes(network, "ACTIVE")
    server = cloud.until(lambda: (row := cloud.named("web")) and row.vm_state == "active" and row)
    [(bridge, options)] = site.vnets().items()
    assert (bridge, options["tag"]) == (made.bridge, "5000")
    assert vnets.owner(options["alias"]) == (network, dressing.CLOUD)
    assert vnets.project(options["alias"]) == "project"
    with site.pve.turn():
        nic = site.pve.vms[server.vmid].config["net0"]
    assert f"bridge={made.bridge}" in nic
    assert "tag=" not in nic
    with pytest.raises(Conflict, match="ports still in use"):
        site.delete(network)
    cloud.delete(server.uuid)
    cloud.until(lambda: cloud.gone(server.uuid))
    cloud.until(lambda: not cloud.rows(schema.ports.select()))
    site.delete(network)
    site.nothing_left()


def test_many_at_once_and_no_vni_is_given_twice(site: Site) -> None:
    first, second = site.network(), site.network()
    with pytest.raises(Conflict, match="No project network"):
        site.network()
    rows = [site.becomes(one, "ACTIVE") for one in (first, second)]
    assert sorted(row.vni for row in rows) == [5000, 5001]
    # Deleted while it is being made: its vnet is removed.
    site.delete(first)
    site.cloud.until(lambda: len(site.pve.sdn.vnets) == 1)
    site.cloud.until(lambda: not site.cloud.open_operations())
    third = site.network()
    site.delete(third)
    site.delete(second)
    site.nothing_left()


@pytest.mark.parametrize("change", ["vnet", "zone", "lock"])
def test_changes_of_others_stay_as_they_are(site: Site, change: str) -> None:
    """They are never applied: neither when a network is made, nor when one is removed."""
    pve, cloud = site.pve, site.cloud
    network = site.network("early")
    bridge = site.becomes(network, "ACTIVE").bridge
    with pve.turn():
        if change == "vnet":
            pve.sdn.vnets["blue"] = Vnet("blue", "tenants", {"tag": "77"})
        elif change == "zone":
            pve.sdn.zones["theirs"] = Zone("theirs", "simple", [], {})
        else:
            pve.sdn.lock = "theirs"
    later = site.network("late")
    site.delete(network)

    def waiting() -> bool:
        return len({one.operation_id for one in cloud.rows(schema.faults.select())}) == 2

    cloud.until(waiting)
    with pve.turn():
        assert set(pve.sdn.running_vnets) == {bridge}
        if change != "lock":
            assert pve.sdn.pending
    said = cloud.rows(sa.select(schema.faults.c.message))
    named = {"vnet": "vnet blue (new)", "zone": "zone theirs (new)", "lock": "invalid lock token"}
    assert all(named[change] in one.message for one in said), said
    assert site.row(later).status == "BUILD"
    with pve.turn():
        pve.sdn.lock = ""
        pve.sdn.vnets.pop("blue", None)
        pve.sdn.zones.pop("theirs", None)
    site.becomes(later, "ACTIVE")
    site.delete(later)
    site.nothing_left()


POST, APPLY = ("POST", "/cluster/sdn/vnets$"), ("PUT", "/cluster/sdn$")
DELETE = ("DELETE", "/cluster/sdn/vnets/")


@pytest.mark.parametrize("at", [POST, APPLY, DELETE], ids=["make", "apply", "remove"])
@pytest.mark.parametrize(
    "action",
    [
        "lose-answer",
        "hang",
        pytest.param("drop", marks=pytest.mark.long),
        pytest.param("fail", marks=pytest.mark.long),
    ],
)
def test_whatever_fails_on_the_way(site: Site, at: tuple[str, str], action: str) -> None:
    """``hang``: the agent is killed during the call."""
    method, path = at
    cloud = site.cloud

    def strike() -> None:
        cloud.simulator.fault(action=action, method=method, path=path, times=1)

    if at != DELETE:
        strike()
    network = site.network()
    _restart_if(cloud, action, at != DELETE)
    site.becomes(network, "ACTIVE")
    assert len(site.vnets()) == 1
    strike()
    site.delete(network)
    _restart_if(cloud, action, at != POST)
    cloud.calm()
    site.nothing_left()


def _restart_if(cloud: World, action: str, strikes: bool) -> None:
    if action == "hang" and strikes:
        cloud.until(lambda: _working(cloud))
        cloud.restart("compute")
        cloud.calm()


def _working(cloud: World) -> bool:
    """Whether an agent has the operation."""
    owners = [row.lease_owner for row in cloud.open_operations()]
    return any(owner and owner.startswith("compute:") for owner in owners)

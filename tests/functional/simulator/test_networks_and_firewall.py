"""Zones, vnets and the firewall as a person changes them while a cloud runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proxmoxer import ResourceException

from simulator.server import Options, Simulator
from tests.functional.simulator.conftest import Lab, connect


def _root(lab: Lab) -> Any:
    return connect(lab.simulator, user="root@pam", password=lab.simulator.password)


def _refused(status: int, text: str) -> Any:
    return pytest.raises(ResourceException, match=rf"(?s)^{status} .*{text}")


def test_who_holds_the_lock_alone_changes_networks(lab: Lab) -> None:
    sdn = _root(lab).cluster.sdn
    token = sdn.lock.post()
    with _refused(500, "invalid lock token provided"):
        sdn.zones.post(zone="z1", type="simple")
    sdn.zones.post(**{"zone": "z1", "type": "simple", "lock-token": token})
    lab.done(sdn.put(**{"lock-token": token}))
    sdn.vnets.post(vnet="blue", zone="z1")
    with _refused(500, "configuration has pending changes"):
        sdn.lock.post()
    assert [one["state"] for one in sdn.vnets.get(pending=1)] == ["new"]
    sdn.rollback.post()
    assert sdn.vnets.get() == []
    assert [one["zone"] for one in sdn.zones.get(running=1)] == ["z1"]


def test_a_changed_zone_is_pending_until_it_is_applied(lab: Lab) -> None:
    sdn = _root(lab).cluster.sdn
    sdn.zones.post(zone="z1", type="simple", mtu=1400)
    lab.done(sdn.put())
    sdn.zones("z1").put(mtu=1500, ipam="pve")
    [waiting] = sdn.zones.get(pending=1)
    assert (waiting["state"], waiting["mtu"]) == ("changed", 1400)
    assert waiting["pending"] == {"mtu": 1500, "ipam": "pve"}
    lab.done(sdn.put())
    assert sdn.zones("z1").get(running=1)["mtu"] == 1500


def test_a_vnet_goes_after_its_subnets_and_a_zone_after_its_vnets(lab: Lab) -> None:
    sdn = _root(lab).cluster.sdn
    sdn.zones.post(zone="z1", type="simple")
    sdn.vnets.post(vnet="blue", zone="z1")
    subnets = sdn.vnets("blue").subnets
    subnets.post(subnet="10.7.0.0/24", type="subnet", gateway="10.7.0.1")
    with _refused(500, "zone z1 is used by vnet blue"):
        sdn.zones("z1").delete()
    with _refused(500, "Parameter verification failed"):
        sdn.vnets("blue").delete()
    subnets("z1-10.7.0.0-24").delete()
    sdn.vnets("blue").delete()
    sdn.zones("z1").delete()
    assert sdn.zones.get() == []


def test_a_firewall_goes_with_its_vm_only_when_it_is_purged(lab: Lab) -> None:
    lab.create(100)
    firewall = _root(lab).nodes("pve1").qemu(100).firewall
    firewall.options.put(enable=1)
    lab.done(lab.api.nodes("pve1").qemu(100).delete())
    assert firewall.options.get()["enable"] == 1
    lab.create(100)
    lab.done(lab.api.nodes("pve1").qemu(100).delete(purge=1))
    assert "enable" not in firewall.options.get()


def test_a_rule_moves_and_a_network_is_an_entry_of_a_set(lab: Lab) -> None:
    firewall = _root(lab).nodes("pve1").qemu(100).firewall
    for port in ("22", "80", "443"):
        firewall.rules.post(type="in", action="ACCEPT", proto="tcp", dport=port)
    assert [one["dport"] for one in firewall.rules.get()] == ["443", "80", "22"]
    firewall.rules(0).put(moveto=2)
    assert [one["dport"] for one in firewall.rules.get()] == ["80", "443", "22"]
    firewall.ipset.post(name="trusted")
    firewall.ipset("trusted").post(cidr="10.0.0.0/8")
    assert firewall.ipset("trusted/10.0.0.0/8").get()["cidr"] == "10.0.0.0/8"
    with _refused(500, "is not empty"):
        firewall.ipset("trusted").delete()
    firewall.ipset("trusted/10.0.0.0/8").delete()
    firewall.ipset("trusted").delete()
    firewall.options.put(enable=0)
    assert firewall.ipset.get() == []


def test_networks_and_firewall_outlive_the_process(tmp_path: Path) -> None:
    options = Options(tmp_path, nodes=1, tls=True, speed=200)
    with Simulator(options) as first:
        root = connect(first, user="root@pam", password=first.password)
        root.cluster.sdn.zones.post(zone="z1", type="simple")
        root.cluster.sdn.vnets.post(vnet="blue", zone="z1")
        root.cluster.sdn.vnets("blue").subnets.post(subnet="10.7.0.0/24", type="subnet")
        root.cluster.firewall.groups.post(group="web")
        root.cluster.firewall.groups("web").post(type="in", action="ACCEPT")
    with Simulator(options) as second:
        root = connect(second, user="root@pam", password=second.password)
        [subnet] = root.cluster.sdn.vnets("blue").subnets.get()
        assert subnet["cidr"] == "10.7.0.0/24"
        assert [one["action"] for one in root.cluster.firewall.groups("web").get()] == ["ACCEPT"]

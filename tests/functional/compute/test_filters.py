"""The firewall of a VM: written before it starts, made what is wanted, never open in between."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from common import ids
from common.context import RequestContext
from common.errors import Unavailable
from common.messages.commands import Build, Nic
from common.messages.filters import Filter, FilterCheck, FilterRule, PortFilter
from common.messages.guests import GuestTarget
from common.messages.questions import CheckFilter, ConvergeFilter
from common.resources.security_rules import Rule
from tests.functional.compute.conftest import Worker, a_build, a_copy, a_plug, as_root
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

MAC, OTHER_MAC = "fa:16:3e:00:00:01", "fa:16:3e:00:00:09"
GROUP = "0f0e0d0c-0b0a-4000-8000-000000000001"
_ids = (ids.named("rule", str(number)) for number in itertools.count())

ALL_OUT = FilterRule(next(_ids), Rule("egress"))
SSH = FilterRule(next(_ids), Rule("ingress", "IPv4", "tcp", 22, 22, "10.0.0.0/8", "10.0.0.0/8"))
PING = FilterRule(next(_ids), Rule("ingress", "IPv6", "ipv6-icmp", 128, 0))
MEMBERS = FilterRule(next(_ids), Rule("ingress", "IPv6", remote_group_id=GROUP))
ODD = FilterRule(next(_ids), Rule("ingress", "IPv4", "icmp", 77))


def a_filter(
    *rules: FilterRule, mac: str = MAC, on: bool | None = True, members: tuple[str, ...] = ()
) -> Filter:
    port = PortFilter(mac, on, ("10.0.0.5", "10.9.0.0/16", "fd00::5"), rules)
    return Filter((port,), {GROUP: members})


def filtered(build: Build, wanted: Filter) -> Build:
    nics = tuple(replace(nic, filtered=True) for nic in build.nics)
    return replace(build, filter=wanted, nics=nics)


class Firewall:
    """A VM's firewall as root sees it."""

    def __init__(self, simulator: RunningSimulator, build: Build) -> None:
        self._qemu = as_root(simulator).nodes("pve1").qemu(build.placed.vmid)
        self.firewall = self._qemu.firewall

    def rules(self) -> list[dict[str, Any]]:
        hidden = ("digest", "pos", "ipversion")
        return [
            {name: value for name, value in one.items() if name not in hidden}
            for one in self.firewall.rules.get()
        ]

    def sets(self) -> dict[str, list[str]]:
        return {
            one["name"]: sorted(entry["cidr"] for entry in self.firewall.ipset(one["name"]).get())
            for one in self.firewall.ipset.get()
        }

    def options(self) -> dict[str, Any]:
        found = self.firewall.options.get()
        del found["digest"]
        return dict(found)

    def net(self, slot: str = "net0") -> str:
        return str(self._qemu.config.get()[slot])


@pytest.fixture
def build(worker: Worker) -> Build:
    made = filtered(a_build(), a_filter(ALL_OUT, SSH, PING, MEMBERS, members=("fd00::7",)))
    assert worker.run(made).ok
    return made


@pytest.fixture
def firewall(simulator: RunningSimulator, build: Build) -> Firewall:
    return Firewall(simulator, build)


def converge(worker: Worker, build: Build, wanted: Filter) -> Any:
    where = build.placed
    carrier = worker.conductor.heartbeats[-1].worker
    target = GuestTarget(build.resource_id, carrier, where.cluster, where.node, where.vmid)
    return worker.client.ask(RequestContext(), target, ConvergeFilter(target, wanted))


def test_all_is_there_before_the_vm_starts(
    simulator: RunningSimulator, build: Build, firewall: Firewall
) -> None:
    assert firewall.rules() == [
        {
            "type": "out",
            "action": "ACCEPT",
            "enable": 1,
            "iface": "net0",
            "dest": "0.0.0.0/0",
            "comment": f"micronova rule={ALL_OUT.id}",
        },
        {
            "type": "in",
            "action": "ACCEPT",
            "enable": 1,
            "iface": "net0",
            "proto": "tcp",
            "dport": "22",
            "source": "10.0.0.0/8",
            "comment": f"micronova rule={SSH.id}",
        },
        {
            "type": "in",
            "action": "ACCEPT",
            "enable": 1,
            "iface": "net0",
            "proto": "ipv6-icmp",
            "icmp-type": "echo-request",
            "source": "::/0",
            "comment": f"micronova rule={PING.id}",
        },
        {
            "type": "in",
            "action": "ACCEPT",
            "enable": 1,
            "iface": "net0",
            "source": "+sg-0f0e0d0c0b0a4000-v6",
            "comment": f"micronova rule={MEMBERS.id}",
        },
    ]
    assert firewall.sets() == {
        "ipfilter-net0": ["10.0.0.5", "10.9.0.0/16", "fd00::5"],
        "sg-0f0e0d0c0b0a4000-v6": ["fd00::7"],
    }
    assert firewall.options() == {
        **{"enable": 1, "policy_in": "DROP", "policy_out": "DROP", "macfilter": 1},
        **{"ipfilter": 1, "dhcp": 1, "ndp": 1, "radv": 0},
    }
    assert ",firewall=1" in firewall.net()
    writes = [one["path"] for one in simulator.control("GET", "calls") if one["method"] != "GET"]
    begun = next(n for n, path in enumerate(writes) if path.endswith("/status/start"))
    assert not [path for path in writes[begun:] if "/firewall/" in path]


def test_only_what_differs_is_written(worker: Worker, build: Build, firewall: Firewall) -> None:
    same = converge(worker, build, build.filter or Filter())
    assert (same.writes, same.unsaid, same.foreign) == (0, (), ())
    wanted = a_filter(ALL_OUT, MEMBERS, ODD, members=("fd00::8", "10.0.0.8"))
    changed = converge(worker, build, wanted)
    # Two rules less; one address for another: another family's is not the rule's.
    assert (changed.writes, changed.unsaid) == (4, (ODD.id,))
    assert [one["comment"][-36:] for one in firewall.rules()] == [ALL_OUT.id, MEMBERS.id]
    assert firewall.sets()["sg-0f0e0d0c0b0a4000-v6"] == ["fd00::8"]
    converge(worker, build, a_filter(SSH, ALL_OUT))
    assert {one["comment"][-36:] for one in firewall.rules()} == {ALL_OUT.id, SSH.id}
    assert list(firewall.sets()) == ["ipfilter-net0"]


def test_what_people_put_there_is_left_and_reported(
    worker: Worker, build: Build, firewall: Firewall
) -> None:
    firewall.firewall.rules.post(type="in", action="DROP", enable=1, comment="mine")
    firewall.firewall.ipset.post(name="friends")
    ours = firewall.firewall.rules.get()[1]
    firewall.firewall.rules(1).put(enable=0, digest=ours["digest"])
    firewall.firewall.options.put(policy_in="ACCEPT")
    done = converge(worker, build, build.filter or Filter())
    assert done.foreign == ("IP set friends", "rule 0: in DROP")
    rules = firewall.rules()
    assert len(rules) == 5
    assert all(one["enable"] for one in rules)
    assert {"type": "in", "action": "DROP", "enable": 1, "comment": "mine"} in rules
    assert "friends" in firewall.sets()
    assert firewall.options()["policy_in"] == "DROP"


def test_a_port_with_filtering_off_is_not_filtered(
    worker: Worker, build: Build, firewall: Firewall
) -> None:
    converge(worker, build, a_filter(ALL_OUT, on=None))
    assert ",firewall=1" in firewall.net()
    converge(worker, build, a_filter(ALL_OUT, on=False))
    assert "firewall" not in firewall.net()
    assert (firewall.rules(), firewall.sets()) == ([], {})
    converge(worker, build, a_filter(ALL_OUT))
    assert ",firewall=1" in firewall.net()
    assert len(firewall.rules()) == 1


@pytest.mark.parametrize("action", ["lose-answer", "fail"])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_another_look_after_a_failed_write(
    worker: Worker,
    simulator: RunningSimulator,
    build: Build,
    firewall: Firewall,
    action: str,
    method: str,
) -> None:
    for nth in (1, 2):
        path = f"{build.placed.vmid}/firewall/"
        order = {"action": action, "method": method, "path": path, "nth": nth}
        simulator.control("POST", "faults", order)
        wanted = a_filter(SSH, MEMBERS, members=(f"fd00::{nth}",))
        for _ in range(2):
            try:
                converge(worker, build, wanted)
            except Unavailable:
                continue
            break
        assert {one["comment"][-36:] for one in firewall.rules()} == {SSH.id, MEMBERS.id}
        assert firewall.sets()["sg-0f0e0d0c0b0a4000-v6"] == [f"fd00::{nth}"]
        converge(worker, build, a_filter(ALL_OUT))


def test_a_clone_carries_them_and_a_server_s_image_does_not(
    worker: Worker, simulator: RunningSimulator, build: Build
) -> None:
    copied = a_copy(build, 150_001)
    assert worker.run(copied).ok
    nodes = as_root(simulator).nodes("pve1")
    assert nodes.qemu(copied.placed.vmid).firewall.rules.get() == []
    vmid = build.placed.vmid + 50_000
    nodes.qemu(build.placed.vmid).clone.post(newid=vmid)
    eventually(lambda: len(nodes.qemu(vmid).firewall.rules.get()) == 4)


def test_another_server_s_vm_is_not_touched(
    worker: Worker, build: Build, firewall: Firewall
) -> None:
    other = replace(build, resource_id=ids.new_uuid())
    with pytest.raises(Unavailable, match="isn't the server's"):
        converge(worker, other, a_filter())
    assert len(firewall.rules()) == 4


def test_an_interface_that_is_plugged_in_is_filtered_from_the_first_moment(
    worker: Worker, simulator: RunningSimulator
) -> None:
    build = a_build()
    assert worker.run(build).ok
    firewall = Firewall(simulator, build)
    assert firewall.options() == {}
    nic = Nic(ids.new_uuid(), ids.new_uuid(), "net", "vmbr0", OTHER_MAC, filtered=True)
    first = PortFilter(MAC, None)
    wanted = Filter((first, *a_filter(SSH, mac=OTHER_MAC).ports))
    assert worker.run(a_plug(build, nic, filter=wanted)).ok
    assert ",firewall=1" in firewall.net("net1")
    assert "firewall" not in firewall.net("net0")
    assert [one["iface"] for one in firewall.rules()] == ["net1"]
    assert list(firewall.sets()) == ["ipfilter-net1"]
    assert worker.run(a_plug(build, nic, on=False, filter=wanted)).ok
    assert (firewall.rules(), firewall.sets()) == ([], {})


def test_a_look_reports_what_differs_and_changes_nothing(
    simulator: RunningSimulator, worker: Worker, build: Build, firewall: Firewall
) -> None:
    where, carrier = build.placed, worker.conductor.heartbeats[-1].worker
    target = GuestTarget(build.resource_id, carrier, where.cluster, where.node, where.vmid)

    def look(wanted: Filter | None) -> FilterCheck:
        simulator.control("DELETE", "calls")
        done = worker.client.ask(RequestContext(), target, CheckFilter(target, wanted or Filter()))
        calls = [
            one for one in simulator.control("GET", "calls") if f"/{where.vmid}/" in one["path"]
        ]
        assert {one["method"] for one in calls} == {"GET"}
        # Configuration, options, rules, sets; and one for each set.
        assert len(calls) <= 4 + 2
        return done

    assert look(build.filter) == FilterCheck()
    firewall.firewall.rules.post(type="in", action="ACCEPT", enable=1, comment="mine")
    firewall.firewall.rules(1).delete()
    firewall.firewall.ipset("ipfilter-net0").post(cidr="10.0.0.6")
    firewall.firewall.options.put(policy_in="ACCEPT")
    as_root(simulator).nodes("pve1").qemu(where.vmid).config.put(
        net0=firewall.net().replace(",firewall=1", "")
    )
    seen = look(build.filter)
    assert seen.foreign == ("rule in ACCEPT",)
    assert seen.differs == (
        "net0 is not filtered",
        "option policy_in is not DROP",
        "rule out ACCEPT net0 0.0.0.0/0 is missing",
        "IP set ipfilter-net0 is not as it should be",
    )
    converge(worker, build, build.filter or Filter())
    assert look(build.filter).differs == ()
    less = look(a_filter(ALL_OUT, SSH))
    assert less.differs == (
        "rule in ACCEPT net0 ipv6-icmp ::/0 is too much",
        "rule in ACCEPT net0 +sg-0f0e0d0c0b0a4000-v6 is too much",
        "IP set sg-0f0e0d0c0b0a4000-v6 is too much",
    )
    other = replace(target, server_uuid=ids.new_uuid())
    with pytest.raises(Unavailable):
        worker.client.ask(RequestContext(), other, CheckFilter(other, Filter()))


def test_an_interface_whose_addresses_others_assign(
    worker: Worker, build: Build, firewall: Firewall
) -> None:
    unknown = Filter((PortFilter(MAC, True, None, (ALL_OUT,)),))
    assert converge(worker, build, unknown).writes
    # An option of the VM would be an empty set of addresses for the interface.
    assert firewall.sets() == {}
    assert firewall.options()["ipfilter"] == 0
    assert converge(worker, build, unknown).writes == 0
    known = Filter((PortFilter(MAC, True, ("10.0.0.5",), (ALL_OUT,)),))
    converge(worker, build, known)
    assert firewall.sets() == {"ipfilter-net0": ["10.0.0.5"]}
    assert firewall.options()["ipfilter"] == 1
    none = Filter((PortFilter(MAC, True, (), (ALL_OUT,)),))
    converge(worker, build, none)
    assert firewall.sets() == {"ipfilter-net0": []}


def test_an_interface_is_switched_off_and_on(
    worker: Worker, build: Build, firewall: Firewall
) -> None:
    (port,) = (build.filter or Filter()).ports
    off = Filter((replace(port, up=False),), (build.filter or Filter()).groups)
    assert converge(worker, build, off).writes == 1
    assert "link_down=1" in firewall.net()
    assert ",firewall=1" in firewall.net()
    assert converge(worker, build, off).writes == 0
    # Nobody has said: what a person chose is left.
    assert converge(worker, build, build.filter or Filter()).writes == 0
    assert "link_down=1" in firewall.net()
    on = Filter((replace(port, up=True),), (build.filter or Filter()).groups)
    assert converge(worker, build, on).writes == 1
    assert "link_down" not in firewall.net()


def test_a_vm_is_made_with_an_interface_that_is_off(
    worker: Worker, simulator: RunningSimulator
) -> None:
    made = a_build()
    made = replace(made, nics=tuple(replace(nic, down=True) for nic in made.nics))
    assert worker.run(made).ok
    assert "link_down=1" in Firewall(simulator, made).net()


def test_a_rule_that_names_an_address_group(
    worker: Worker, build: Build, firewall: Firewall
) -> None:
    rule = FilterRule(next(_ids), Rule("ingress", "IPv4", remote_address_group_id=GROUP))
    wanted = a_filter(rule, members=("10.7.0.0/16", "10.8.0.1/32", "fd00::/64"))
    converge(worker, build, wanted)
    assert firewall.rules()[0]["source"] == "+sg-0f0e0d0c0b0a4000-v4"
    assert firewall.sets()["sg-0f0e0d0c0b0a4000-v4"] == ["10.7.0.0/16", "10.8.0.1"]


def test_an_interface_that_may_use_other_macs(
    worker: Worker, build: Build, firewall: Firewall
) -> None:
    (port,) = (build.filter or Filter()).ports
    groups = (build.filter or Filter()).groups
    converge(worker, build, Filter((replace(port, any_mac=True),), groups))
    assert (firewall.options()["macfilter"], firewall.options()["ipfilter"]) == (0, 1)
    assert firewall.sets()["ipfilter-net0"] == ["10.0.0.5", "10.9.0.0/16", "fd00::5"]
    converge(worker, build, Filter((port,), groups))
    assert firewall.options()["macfilter"] == 1

"""Groups whose places keep their ports: one server after the other has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.resources.groups import GroupAction
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.rpc.groups import GroupChanges
from conductor.rpc.networks.ports import PortChange
from conductor.rpc.networks.security_groups import NewSecurityGroup
from conductor.rpc.servers.servers import BlockDevice, RequestedNetwork
from conductor.store.networks import networks, user_ports
from conductor.store.networks.filtering import security_groups
from db import schema
from tests.functional.conductor.test_groups import hasten_all
from tests.functional.conductor.test_stateful_groups import Stateful

UNLIMITED = dict.fromkeys(("security_group", "security_group_rule"), -1)


class WithPorts(Stateful):
    """Groups with a port of each place in one network."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for cidr in ("10.0.0.0/27", "10.0.1.0/27"):
            subnet = networks.parse_subnet(f"vmbr{cidr[5]}={cidr}")
            self.world.conductor.store.run(
                lambda c, subnet=subnet: networks.ensure_subnet(c, subnet)
            )
        found = {one.bridge: str(one.id) for one in self.world.rows(schema.networks)}
        self.first, self.second = found["vmbr0"], found["vmbr1"]
        store, limits = self.world.conductor.store, UNLIMITED
        self.web = store.run(
            lambda c: security_groups.create(c, NewSecurityGroup("p", "web"), limits)
        )
        self.user = PortEndpoint(self.world.conductor.cloud, self.world.conductor.runner)
        self.profile_id = self.of_networks(self.first)

    def of_networks(self, *named: str, **more: Any) -> str:
        asked = tuple(RequestedNetwork(one) for one in named)
        return self.profile("wired", networks=asked, security_groups=(self.web,), **more)

    def wired(self, count: int = 2, **config: Any) -> str:
        return self.stateful(count, **{"keep": "ports", **config})

    def ports(self) -> dict[str, Any]:
        return {one.id: one for one in self.world.rows(schema.ports)}

    def kept(self) -> dict[int, list[str]]:
        return {one.member_index: list(one.ports) for one in self.members()}

    def identities(self) -> dict[str, tuple[str, str, list[str]]]:
        """Port → its address, MAC address and security groups."""
        bound = self.world.rows(schema.port_security_groups)
        return {
            one.id: (
                *(one.ip, one.mac),
                [each.security_group_id for each in bound if each.port_id == one.id],
            )
            for one in self.ports().values()
        }

    def users(self) -> dict[str, str]:
        """Port → its server."""
        return {key: one.server_uuid for key, one in self.ports().items()}

    def right(self) -> None:
        """Each member's server has the ports of its place, and there is no other port."""
        assert self.users() == {
            one: member.server_uuid for member in self.members() for one in member.ports
        }

    def replace_by(self, group: str, profile: str, count: int) -> None:
        former = {one.server_uuid for one in self.members()}
        self.rpc.change_group(self.world.ctxt, group, GroupChanges(profile_id=profile))
        self.world._wait(
            lambda: (self.group(group).rolling, former & {*self.servers()}),
            lambda seen: seen == (False, set()),
        )
        self.settled(group, count)


@pytest.fixture
def wired(tmp_path: Path) -> Iterator[WithPorts]:
    made = WithPorts(tmp_path)
    yield made
    made.close()


def test_a_place_has_ports_that_are_its_project_s(wired: WithPorts) -> None:
    wired.wired()
    found = wired.ports()
    names = [found[one].name for some in wired.kept().values() for one in some]
    assert names == ["web-1-port-1", "web-2-port-1"]
    assert {one.project_id for one in found.values()} == {"p"}
    assert {tuple(one[2]) for one in wired.identities().values()} == {(wired.web,)}
    wired.right()


def test_a_server_that_its_user_deletes_leaves_its_port_to_the_next(wired: WithPorts) -> None:
    group = wired.wired()
    kept, before = wired.kept(), wired.identities()
    former = wired.members()[0].server_uuid
    wired.delete(former)
    wired.replaced(group, former)
    assert (wired.kept(), wired.identities()) == (kept, before)
    wired.right()
    server = wired.servers()[str(wired.members()[0].server_uuid)]
    assert before[kept[1][0]][0] in str(server.addresses)


def test_volumes_and_ports_are_kept_together(wired: WithPorts) -> None:
    devices = (BlockDevice(size_gib=2, delete_on_termination=True),)
    wired.profile_id = wired.of_networks(wired.first, volumes=devices)
    group = wired.wired(keep="volumes,ports")
    kept, places = wired.kept(), wired.places()
    former = wired.members()[0].server_uuid
    wired.delete(former)
    new = wired.replaced(group, former)
    assert (wired.kept(), wired.places()) == (kept, places)
    assert wired.attached()[places[1][0]] == new
    wired.right()


def test_another_profile_has_the_ports_of_its_networks(wired: WithPorts) -> None:
    group = wired.wired()
    first, before = wired.kept(), wired.identities()
    wired.replace_by(group, wired.of_networks(wired.second, wired.first), 2)
    both = wired.kept()
    assert {index: some[1:] for index, some in both.items()} == first
    assert before.items() <= wired.identities().items()
    wired.right()
    # What this profile lacks remains the place's, for a later profile with that network.
    wired.replace_by(group, wired.of_networks(wired.second), 2)
    assert wired.kept() == both
    assert [wired.users()[some[1]] for some in both.values()] == ["", ""]
    wired.replace_by(group, wired.of_networks(wired.first), 2)
    assert {index: sorted(some) for index, some in wired.kept().items()} == {
        index: sorted(some) for index, some in both.items()
    }
    assert {index: some[:1] for index, some in wired.kept().items()} == first
    assert len(wired.ports()) == 4


def test_those_that_name_no_network_keep_a_port_in_theirs(wired: WithPorts) -> None:
    wired.world.conductor.store.run(
        lambda c: c.execute(schema.networks.delete().where(schema.networks.c.id == wired.second))
    )
    wired.profile_id = wired.profile("auto", auto_network=True)
    wired.wired(1)
    assert [one.network_id for one in wired.ports().values()] == [wired.first]
    wired.right()


def test_on_a_lost_node_they_are_waited_for(wired: WithPorts) -> None:
    world, down = wired.world, schema.services.update()
    world.scheduler.hosts[:] = ["pve1"]
    group = wired.wired(1)
    before, former = wired.identities(), wired.members()[0].server_uuid
    world.scheduler.hosts[:] = ["pve2"]
    world.beat(lost="pve1")
    lost = schema.services.c.host == "pve1"
    world.conductor.store.run(lambda c: c.execute(down.values(forced_down=lost)))
    wired.rpc.tend_group(world.ctxt, group, GroupAction.CHECK)

    def seen() -> tuple[str, str]:
        (member,) = wired.members()
        wired.hasten(group)
        return member.server_uuid, member.reason

    why = "Its node is lost, and its former server may still have its ports: "
    world._wait(seen, lambda found: found[0] == former and found[1].startswith(why))
    assert (wired.begun("create"), [*wired.users().values()]) == (1, [former])
    world.conductor.store.run(lambda c: c.execute(down.values(forced_down=False)))
    world.beat()
    world.make_due()
    world.conductor.runner.wake()
    wired.replaced(group, former, 1)
    assert wired.identities() == before
    wired.right()


def test_ports_are_deleted_with_the_place(wired: WithPorts) -> None:
    group = wired.wired()
    first = wired.kept()[1]
    wired.resize(group, 1)
    wired.settled(group, 1)
    assert len(wired.ports()) == 1
    wired.right()
    wired.resize(group, 2)
    wired.settled(group, 2)
    assert len(wired.ports()) == 2
    wired.right()
    wired.rpc.delete_group(wired.world.ctxt, group, keep=False)
    wired.world._wait(
        lambda: (len(wired.ports()), len(wired.servers()), len(wired.open())),
        lambda seen: seen == (0, 0, 0),
    )
    assert (wired.world.rows(schema.port_security_groups), len(first)) == ([], 1)


def test_a_group_that_lets_its_servers_go_leaves_the_ports_to_them(wired: WithPorts) -> None:
    group = wired.wired()
    before = wired.users()
    wired.rpc.delete_group(wired.world.ctxt, group, keep=True)
    assert (wired.members(), wired.users()) == ([], before)


def test_a_creation_that_fails_keeps_the_ports_of_the_place(wired: WithPorts) -> None:
    fails = iter([True])
    wired.agents.broken = lambda _: next(fails, False)
    group = wired.create(1, wired.profile_id, keep="ports")
    hasten_all(wired, group, until=lambda: wired.begun("create") == 2)
    wired.settled(group, 1)
    assert len(wired.ports()) == 1
    wired.right()


def test_a_port_that_is_elsewhere_is_waited_for(wired: WithPorts) -> None:
    group = wired.wired(1)
    former, (port,) = wired.members()[0].server_uuid, wired.kept()[1]
    store = wired.world.conductor.store
    other = "another-server"
    # Its user has attached it to another server.
    store.run(lambda c: (user_ports.free(c, port), user_ports.give(c, port, other, 0, None)))
    wired.delete(former)
    wired.world._wait(
        lambda: wired.members()[0].reason,
        lambda seen: seen == f"Its port {port} is in use: it gets a server once that is free.",
    )
    assert (wired.begun("create"), wired.group(group).failures) == (1, 0)
    store.run(lambda c: user_ports.free(c, port))
    wired.hasten(group)
    wired.settled(group, 1)
    wired.right()


def test_a_port_that_its_user_deleted_is_made_again(wired: WithPorts) -> None:
    group = wired.wired(1)
    former, (port,) = wired.members()[0].server_uuid, wired.kept()[1]
    store = wired.world.conductor.store
    store.run(lambda c: (user_ports.free(c, port), user_ports.delete(c, port)))
    wired.delete(former)
    wired.replaced(group, former, 1)
    assert wired.kept()[1] != [port]
    wired.right()


def test_a_port_is_as_its_user_changes_it(wired: WithPorts) -> None:
    group = wired.wired(1)
    former, (port,) = wired.members()[0].server_uuid, wired.kept()[1]
    wired.user.update_port(wired.world.ctxt, port, PortChange(name="mine", security_groups=()))
    wired.delete(former)
    wired.replaced(group, former, 1)
    assert (wired.ports()[port].name, wired.identities()[port][2]) == ("mine", [])
    wired.right()


def test_ports_count_for_the_quota_which_is_waited_for(wired: WithPorts) -> None:
    limit = schema.quota_limits.insert().values(project_id="p", resource="port", hard_limit=1)
    store = wired.world.conductor.store
    store.run(lambda c: c.execute(limit))
    group = wired.create(2, wired.profile_id, keep="ports", at_once=1)
    wired.world._wait(
        lambda: (wired.group(group).refusals > 0, wired.group(group).failures),
        lambda seen: seen == (True, 0),
    )
    assert wired.group(group).status_reason.startswith("It waits for quota: Quota exceeded")
    assert len(wired.ports()) == 1
    store.run(lambda c: c.execute(schema.quota_limits.delete()))
    wired.hasten(group)
    wired.settled(group, 2)
    wired.right()


def test_without_the_option_ports_are_made_with_each_server(wired: WithPorts) -> None:
    group = wired.create(1, wired.profile_id)
    (former,) = wired.settled(group, 1)
    (port,) = wired.ports()
    assert wired.kept() == {1: []}
    wired.delete(former)
    wired.replaced(group, former, 1)
    assert port not in wired.ports()
    assert len(wired.ports()) == 1

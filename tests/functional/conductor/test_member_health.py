"""Members whose guests are checked: what agents are asked, and what follows from their answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import clock, ids
from common.messages.health import CheckResult, GuestCheck, GuestHealth
from common.resources.groups import GroupAction
from conductor.rpc.groups import GroupChanges, NewProfile
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from conductor.store.groups import checks
from conductor.store.networks import networks
from db import schema
from tests.functional.conductor.harness import IMAGE
from tests.functional.conductor.test_groups import FLAVOR, Groups, hasten_all

NO_ANSWER = "Port 80 takes no connection."


class Checked(Groups):
    """Groups whose members' port 80 is checked, and the agent that does so."""

    def checked(self, count: int = 3, **config: Any) -> str:
        return self.create(count, health_tcp_port=80, health_grace=0, **config)

    def asked(self, worker: str = "w1") -> dict[str, GuestCheck]:
        """What an agent is asked to check, by the members' names."""
        with self.world.conductor.store.read() as connection:
            return {one.name: one for one in checks.of_worker(connection, worker)}

    def report(self, *names: str, well: bool, worker: str = "w1", long_ago: bool = True) -> None:
        """An agent reports what it saw of these members; an hour ago, if not just now."""
        result = CheckResult.WELL if well else CheckResult.SICK
        # A member that is being replaced may be gone since its name was read.
        asked = [one for name, one in self.asked().items() if name in names]
        found = [
            GuestHealth(one.server_uuid, one.begins_at, result, "" if well else NO_ANSWER)
            for one in asked
        ]

        def work(connection: Any) -> None:
            checks.take(connection, worker, found)
            if long_ago:
                times = {"health_at": clock.after(-3600)}
                connection.execute(schema.scaling_members.update().values(times))

        self.world.conductor.store.run(work)

    def until_asked(self, count: int) -> list[str]:
        """Wait until an agent is to check so many members."""
        self.world._wait(self.asked, lambda found: len(found) == count)
        return sorted(self.asked())

    def well(self, count: int = 3, **config: Any) -> tuple[str, list[str]]:
        """A group whose members are well, and its servers."""
        group = self.checked(count, **config)
        self.report(*self.until_asked(count), well=True)
        return group, self.settled(group, count)


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[Checked]:
    made = Checked(tmp_path)
    yield made
    made.close()


def test_a_group_without_checks_asks_for_none(groups: Checked) -> None:
    groups.settled(groups.create(2), 2)
    assert groups.asked() == {}


def test_a_new_member_counts_once_it_is_well(groups: Checked) -> None:
    group = groups.checked(2)
    names = groups.until_asked(2)
    assert groups.asked("w2") == {}
    groups.report(names[0], well=True)
    assert [one.action for one in groups.open()] == ["group-create"]
    groups.report(names[1], well=True)
    groups.settled(group, 2)
    assert {one.known for one in groups.asked().values()} == {CheckResult.WELL}


def test_one_that_is_not_well_is_replaced(groups: Checked) -> None:
    group, uuids = groups.well()
    groups.report("web-2", well=False)
    groups.world._wait(
        lambda: groups.members()[1].server_uuid, lambda uuid: uuid not in (None, uuids[1])
    )
    groups.until_asked(3)
    # Nothing is known of the new one.
    assert groups.asked()["web-2"].known is None
    groups.report("web-2", well=True)
    after = groups.settled(group, 3)
    assert [after[0], after[2]] == [uuids[0], uuids[2]]
    assert groups.group(group).failures == 0


def test_a_policy_says_how_it_is_repaired(groups: Checked) -> None:
    group, uuids = groups.well()
    actions = {"actions": [{"name": "REBOOT"}]}
    spec = {"type": "senlin.policy.health", "version": "1.2", "properties": {"recovery": actions}}
    policy = groups.rpc.create_policy(groups.world.ctxt, "p", spec)
    groups.rpc.bind_policy(groups.world.ctxt, group, policy, enabled=True, new=True)
    groups.settled(group, 3)
    for times in (1, 2):
        groups.until_asked(3)
        before = groups.asked()["web-2"].begins_at
        groups.report("web-2", well=False)
        groups.world._wait(lambda: groups.begun("reboot-hard"), lambda n, t=times: n == t)
        groups.world._wait(
            lambda: groups.asked().get("web-2"), lambda one, b=before: one and one.begins_at > b
        )
        assert groups.asked()["web-2"].known is None
    # Twice is enough.
    groups.report("web-2", well=False)
    groups.world._wait(
        lambda: groups.members()[1].server_uuid, lambda uuid: uuid not in (None, uuids[1])
    )


def test_those_that_become_sick_one_after_the_other_are_all_at_once(groups: Checked) -> None:
    """They are checked at different moments: an outage is not seen of all of them at once."""
    group, uuids = groups.well()
    for name in ("web-1", "web-2"):
        groups.report(name, well=False, long_ago=False)
        groups.world._wait(
            lambda: groups.open()[0].not_before if groups.open() else None,
            lambda at: at is not None,
        )
    assert [one.server_uuid for one in groups.members()] == uuids
    assert groups.begun("delete") == 0
    groups.report("web-3", well=False, long_ago=False)
    groups.world._wait(lambda: groups.group(group).status, lambda status: status == "ERROR")
    assert groups.begun("delete") == 0
    groups.report("web-1", "web-2", "web-3", well=True)
    assert groups.settled(group, 3) == uuids


def test_all_at_once_are_reported(groups: Checked) -> None:
    group, uuids = groups.well()
    groups.report("web-1", "web-2", "web-3", well=False)
    groups.world._wait(
        lambda: groups.group(group).status_reason,
        lambda text: text.startswith("All of its 3 members are not well at once"),
    )
    assert groups.group(group).status == "ERROR"
    assert [one.server_uuid for one in groups.members()] == uuids
    groups.report("web-1", "web-2", "web-3", well=True)
    assert groups.settled(group, 3) == uuids


def test_new_members_that_never_become_well_are_reverted(groups: Checked) -> None:
    group, uuids = groups.well(2)
    first = groups.group(group).profile_id
    changes = GroupChanges(profile_id=groups.profile("bad"))
    groups.rpc.change_group(groups.world.ctxt, group, changes)

    def reverted() -> bool:
        new = [name for name, one in groups.asked().items() if one.server_uuid not in uuids]
        if new:
            groups.report(*new, well=False)
        return bool(groups.group(group).profile_id == first)

    hasten_all(groups, group, reverted)
    assert groups.settled(group, 2) == uuids
    reason = groups.group(group).status_reason
    assert reason.startswith("Rolled back: 5 creations in a row")
    assert reason.endswith(f"did not become well: {NO_ANSWER}")


def test_what_others_say_or_what_is_late_counts_for_nothing(groups: Checked) -> None:
    group, uuids = groups.well(2)
    groups.report("web-1", well=False, worker="w2")
    late = groups.asked()["web-1"]
    found = GuestHealth(uuids[0], checks.begins_at(None, None, late.checks), CheckResult.SICK)
    groups.world.conductor.store.run(lambda c: checks.take(c, "w1", [found]))
    assert groups.settled(group, 2) == uuids
    assert {one.health for one in groups.members()} == {"well"}


def test_one_that_can_t_be_checked_is_no_reason_to_replace_it(groups: Checked) -> None:
    group = groups.checked(1)
    groups.until_asked(1)
    one = groups.asked()["web-1"]
    text = "It has no address on a network that its host's agent reaches."
    found = GuestHealth(one.server_uuid, one.begins_at, CheckResult.UNKNOWN, text)
    groups.world.conductor.store.run(lambda c: checks.take(c, "w1", [found]))
    groups.settled(group, 1)
    assert groups.members()[0].health_reason == text


def test_only_addresses_on_the_operator_s_networks_are_asked(groups: Checked) -> None:
    """In a project's own network an address may be anybody's where the agent is."""
    store = groups.world.conductor.store
    subnet = networks.parse_subnet("vmbr0=192.0.2.0/24")
    store.run(lambda c: networks.ensure_subnet(c, subnet))
    bridge = ids.named("network", "vmbr0")
    request = CreateServers("", FLAVOR, IMAGE, networks=(RequestedNetwork(bridge),))
    profile = groups.rpc.create_profile(groups.world.ctxt, NewProfile("p", {}, request))
    group = groups.create(1, profile, health_tcp_port=80)
    groups.until_asked(1)
    assert groups.asked()["web-1"].address.startswith("192.0.2.")
    owned = schema.networks.update().where(schema.networks.c.id == bridge).values(project_id="p")
    store.run(lambda c: c.execute(owned))
    assert groups.asked()["web-1"].address == ""
    groups.rpc.tend_group(groups.world.ctxt, group, GroupAction.CHECK)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "240.0.0.1"],
)
def test_no_member_has_an_address_of_the_machine_that_asks(address: str) -> None:
    there = [{"network_id": "n", "ip": address}, {"network_id": "n", "ip": "192.0.2.9"}]
    assert checks.address_of(there, {"n"}) == "192.0.2.9"
    assert checks.address_of(there, ()) == ""

"""Groups keep their count: created, scaled, replaced and repaired, by what happens."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import Build, Command, Destroy, MakeVolume, RemoveVolume
from common.messages.reports import Category, Failure, MadeVolume
from common.resources.groups import GroupAction
from common.rpc import deadlines
from common.rpc.deadlines import Deadline, Wait
from conductor.endpoints.groups import GroupEndpoint
from conductor.rpc.groups import GroupChanges, NewGroup, NewProfile, Resize
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreateServers
from db import schema
from tests.functional.conductor.harness import IMAGE, World

BROKEN = Failure(Category.IMAGE_CORRUPT, "The image is broken.")
FLAVOR = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)


class Agents:
    """Answer every command on a thread of their own, in order."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._queue: queue.Queue[Command | None] = queue.Queue()
        self.broken: Callable[[Build], bool] = lambda _: False
        """Whether a build fails."""
        self.holds = False
        """Whether builds are not answered for now."""
        self.held: list[Command] = []
        self.makes = 0
        """Volumes that were made."""
        self._thread = threading.Thread(target=self._run)
        world.compute.answering = self._queue.put
        self._thread.start()

    def _run(self) -> None:
        while (command := self._queue.get()) is not None:
            if isinstance(command, Build) and self.holds:
                self.held.append(command)
            else:
                self.answer(command)

    def answer(self, command: Command) -> None:
        if isinstance(command, Build) and self.broken(command):
            self._world.answer(command, ok=False, failure=BROKEN, gone=True)
        elif isinstance(command, MakeVolume):
            self.makes += 1
            volid = f"local:vm-{command.placed.vmid}-disk-0"
            made = MadeVolume(volid, command.size_gib << 30)
            self._world.answer(command, ok=True, volume=made)
        elif isinstance(command, Destroy | RemoveVolume):
            self._world.answer(command, ok=True, gone=True)
        else:
            self._world.answer(command, ok=True, power_state=1)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()


class Groups:
    """A world with groups, whose conductor looks around once an hour only: what follows is begun
    by what happens."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder, bridges=("vmbr0",), scan_seconds=3600, settle_seconds=0.0)
        self.world.conductor.runner.start()
        self.agents = Agents(self.world)
        self.rpc = GroupEndpoint(self.world.conductor.cloud, self.world.conductor.runner)

    def profile(self, name: str = "small", **changes: Any) -> str:
        request = CreateServers(name="x", flavor=FLAVOR, image_id=IMAGE, **changes)
        return self.rpc.create_profile(self.world.ctxt, NewProfile(name, {}, request))

    def create(self, count: int = 3, profile: str | None = None, **config: Any) -> str:
        options = {f"micronova.{name}": value for name, value in config.items()}
        new = NewGroup("web", profile or self.profile(), count, 0, 10, 3600, {}, options)
        return self.rpc.create_group(self.world.ctxt, new)[0]

    def group(self, group_id: str) -> Any:
        return next(one for one in self.world.rows(schema.scaling_groups) if one.id == group_id)

    def members(self) -> list[Any]:
        rows = self.world.rows(schema.scaling_members)
        return sorted(rows, key=lambda one: one.member_index or 0)

    def servers(self) -> Mapping[str, Any]:
        """Those that are not deleted, by their UUIDs."""
        rows = self.world.rows(schema.servers)
        return {one.uuid: one for one in rows if one.deleted_at is None}

    def settled(self, group_id: str, count: int, status: str = "ACTIVE") -> list[str]:
        """Wait until a group has so many servers that work and nothing is open about it."""
        self.world._wait(
            lambda: (
                self.group(group_id).status,
                sorted(one.vm_state for one in self.servers().values()),
                [one.action for one in self.open()],
            ),
            lambda seen: seen == (status, ["active"] * count, []),
        )
        return [one.server_uuid for one in self.members()]

    def open(self) -> list[Any]:
        rows = self.world.rows(schema.operations)
        return [one for one in rows if one.state in ("queued", "running", "unwinding")]

    def ended(self, number: int) -> tuple[str, str]:
        def one() -> Any:
            return next(row for row in self.world.rows(schema.operations) if row.id == number)

        self.world._wait(one, lambda row: row.state in ("done", "failed"))
        return one().state, one().message

    def begun(self, action: str) -> int:
        return sum(one.action == action for one in self.world.rows(schema.operations))

    def resize(self, group_id: str, number: int) -> int:
        asked = Resize(GroupAction.RESIZE, "EXACT_CAPACITY", number)
        return self.rpc.resize_group(self.world.ctxt, group_id, asked)

    def hasten(self, group: str) -> None:
        """End a back-off at once."""
        of, about = schema.scaling_groups, schema.operations.c.resource_id == group

        def over(connection: Any) -> None:
            connection.execute(of.update().where(of.c.id == group).values(not_before=None))
            connection.execute(schema.operations.update().where(about).values(not_before=None))

        self.world.conductor.store.run(over)
        self.world.conductor.runner.wake()

    def close(self) -> None:
        self.agents.close()
        self.world.close()


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[Groups]:
    made = Groups(tmp_path)
    yield made
    made.close()


def test_a_group_gets_as_many_members_as_desired(groups: Groups) -> None:
    group = groups.create(3)
    uuids = groups.settled(group, 3)
    assert len(set(uuids)) == 3
    servers = groups.servers()
    assert [servers[uuid].name for uuid in uuids] == ["web-1", "web-2", "web-3"]
    assert {servers[uuid].member_of for uuid in uuids} == {group}
    assert {(one.project_id, one.user_id) for one in servers.values()} == {("p", "u")}
    (created,) = [o for o in groups.world.rows(schema.operations) if o.action == "group-create"]
    assert (created.state, created.message) == ("done", "3 of 3 members work.")


def test_it_grows_and_shrinks(groups: Groups) -> None:
    group = groups.create(2)
    first = groups.settled(group, 2)
    number = groups.resize(group, 5)
    assert groups.ended(number) == ("done", "5 of 5 members work.")
    assert groups.settled(group, 5)[:2] == first
    number = groups.resize(group, 1)
    assert groups.ended(number)[0] == "done"
    # The oldest leave first, and those of the more crowded host before them.
    assert groups.settled(group, 1)[0] not in first
    assert len(groups.members()) == 1


def test_a_member_that_is_deleted_or_fails_is_replaced_in_its_place(groups: Groups) -> None:
    group = groups.create(2)
    first, second = groups.settled(group, 2)
    groups.world.act(first, "delete")
    groups.world._wait(
        lambda: groups.members()[0].server_uuid, lambda uuid: uuid not in (None, first)
    )
    uuids = groups.settled(group, 2)
    assert uuids[1] == second
    assert [one.member_index for one in groups.members()] == [1, 2]
    assert groups.group(group).desired == 2


def test_a_group_that_shrinks_with_its_users(groups: Groups) -> None:
    group = groups.create(2, shrink="true")
    first, second = groups.settled(group, 2)
    groups.world.act(first, "delete")
    groups.world._wait(lambda: groups.group(group).desired, lambda desired: desired == 1)
    assert groups.settled(group, 1) == [second]


def test_a_bad_image_fails_five_times_and_no_more(groups: Groups) -> None:
    groups.agents.broken = lambda _: True
    group = groups.create(6)
    hasten_all(groups, group, until=lambda: groups.group(group).halted is not None)
    row = groups.group(group)
    assert row.failures == 5
    assert row.halted.startswith("5 creations in a row failed, so none is tried: ")
    groups.world._wait(groups.servers, lambda found: not found)
    groups.settled(group, 0, "ERROR")
    assert groups.begun("create") == 5
    assert "The image" in row.halted or "broken" in row.halted
    # What happens elsewhere changes nothing; repairing it by hand does.
    groups.agents.broken = lambda _: False
    number = groups.resize(group, 3)
    assert groups.ended(number)[0] == "failed"
    assert groups.begun("create") == 5
    groups.rpc.tend_group(groups.world.ctxt, group, GroupAction.RECOVER)
    groups.settled(group, 3)
    assert groups.group(group).halted is None


def halted(groups: Groups, **config: Any) -> str:
    """A group whose circuit is open."""
    groups.agents.broken = lambda _: True
    group = groups.create(3, **config)
    hasten_all(groups, group, until=lambda: groups.group(group).halted is not None)
    groups.settled(group, 0, "ERROR")
    return group


def test_another_profile_closes_the_circuit(groups: Groups) -> None:
    group = halted(groups)
    bad = groups.group(group).profile_id
    groups.agents.broken = lambda _: False
    good = groups.profile("good")
    number = groups.rpc.change_group(groups.world.ctxt, group, GroupChanges(profile_id=good))
    assert groups.ended(number) == ("done", "3 of 3 members work.")
    groups.settled(group, 3)
    row = groups.group(group)
    assert (row.failures, row.halted, row.not_before, row.rolling) == (0, None, None, False)
    assert {one.profile_id for one in groups.members()} == {good} != {bad}
    assert groups.begun("create") == 5 + 3


def test_another_profile_that_fails_opens_the_circuit_again(groups: Groups) -> None:
    """It is not reverted for ever to a profile that failed, too."""
    group = halted(groups, roll_back="false")
    worse = groups.profile("worse")
    groups.rpc.change_group(groups.world.ctxt, group, GroupChanges(profile_id=worse))
    groups.world._wait(lambda: groups.group(group).halted, lambda halted: halted is None)
    hasten_all(groups, group, until=lambda: groups.group(group).halted is not None)
    groups.settled(group, 0, "ERROR")
    assert groups.begun("create") == 5 + 5
    assert groups.group(group).profile_id == worse


@pytest.mark.parametrize("changes", [GroupChanges(name="new"), GroupChanges(metadata={"a": "b"})])
def test_other_changes_leave_the_circuit_open(groups: Groups, changes: GroupChanges) -> None:
    group = halted(groups)
    number = groups.rpc.change_group(groups.world.ctxt, group, changes)
    assert groups.ended(number)[0] == "failed"
    assert groups.group(group).halted is not None
    assert groups.begun("create") == 5


def test_the_reason_is_known_while_what_was_made_is_still_undone(groups: Groups) -> None:
    """Placement is away, so that the creation does not end."""

    def broken(_: Build) -> bool:
        groups.world.placement.down = True
        return True

    groups.agents.broken = broken
    group = groups.create(1)
    groups.world._wait(lambda: groups.group(group).failures, lambda count: count == 1)
    assert groups.group(group).status_reason == f"A creation failed: {BROKEN.message}"
    assert [one.state for one in groups.open() if one.action == "create"] == ["unwinding"]


@pytest.mark.parametrize(
    ("config", "profile", "seconds"),
    [
        ({}, {}, 86_400),
        ({"wait_seconds": 60}, {}, 60),
        ({}, {"scheduler_hints": {"micronova:wait": "600"}}, 600),
        ({"wait_seconds": "0"}, {"scheduler_hints": {"micronova:wait": "600"}}, 600),
    ],
)
def test_members_that_find_no_room_wait_for_it(
    groups: Groups, config: dict[str, Any], profile: dict[str, Any], seconds: int
) -> None:
    world, waiting = groups.world, schema.waiting_builds
    hosts, world.scheduler.hosts = world.scheduler.hosts, []
    group = groups.create(2, groups.profile(**profile), **config)
    world._wait(lambda: len(world.rows(waiting)), lambda count: count == 2)
    waits = [(one.until - one.since).total_seconds() for one in world.rows(waiting)]
    assert [round(one) for one in waits] == [seconds] * 2
    assert {one.task_state for one in groups.servers().values()} == {"scheduling"}
    assert (groups.group(group).failures, groups.group(group).halted) == (0, None)
    # They leave first when it shrinks.
    groups.resize(group, 1)
    world._wait(groups.servers, lambda found: len(found) == 1)
    world.scheduler.hosts = hosts
    world.make_due()
    world.conductor.runner.wake()
    groups.settled(group, 1)


@pytest.mark.parametrize(
    ("config", "default"), [({"wait_seconds": 0}, 86_400), ({}, None)], ids=["asked", "older"]
)
def test_members_that_do_not_wait_for_room_fail(
    groups: Groups, config: dict[str, Any], default: int | None
) -> None:
    """As do those of a group of before members waited."""
    group = groups.create(0, **config)
    groups.settled(group, 0)
    of = schema.scaling_groups.update().values(default_wait_seconds=default)
    groups.world.conductor.store.run(lambda c: c.execute(of))
    groups.world.scheduler.hosts = []
    groups.resize(group, 1)
    groups.world._wait(lambda: groups.group(group).failures, lambda count: count == 1)
    assert "No valid host was found" in groups.group(group).status_reason


def hasten_all(groups: Groups, group: str, until: Callable[[], bool]) -> None:
    """End every back-off at once."""

    def step() -> bool:
        # The group's operation waits in a commit of its own, after the group's.
        waits = [groups.group(group).not_before, *(one.not_before for one in groups.open())]
        if any(waits) and all(one.vm_state == "active" for one in groups.servers().values()):
            groups.hasten(group)
        return until()

    groups.world._wait(step, bool)


def test_a_call_that_comes_twice_is_carried_out_once(groups: Groups) -> None:
    profile = groups.profile()
    new = NewGroup("web", profile, 1, 0, 9, 3600)
    asked = Resize(GroupAction.SCALE_OUT, "CHANGE_IN_CAPACITY", 1)
    made = []
    for _ in range(2):
        with deadlines.answering(Deadline(Wait(60, call="c1"), time.monotonic())):
            made.append(groups.rpc.create_group(groups.world.ctxt, new))
    assert made[0] == made[1]
    group = made[0][0]
    numbers = set()
    for _ in range(2):
        with deadlines.answering(Deadline(Wait(60, call="c2"), time.monotonic())):
            numbers.add(groups.rpc.resize_group(groups.world.ctxt, group, asked))
    assert len(numbers) == 1
    groups.settled(group, 2)
    assert groups.group(group).desired == 2

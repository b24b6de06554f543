"""Groups whose places keep their volumes: one server after the other has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.resources.groups import GroupAction
from common.resources.volumes import VolumeStatus
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.rpc.groups import GroupChanges
from conductor.rpc.servers.servers import BlockDevice
from conductor.store.volumes import attachments
from conductor.store.volumes import volumes as volume_rows
from db import schema
from tests.functional.conductor.test_groups import Groups, hasten_all
from tests.functional.conductor.test_volumes import DATA


class Stateful(Groups):
    """Groups whose members have a root disk of their own, and a data volume of their place."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.world.storages.append(DATA)
        self.world.beat()
        self.profile_id = self.of_volumes(2)

    def of_volumes(self, *sizes: int) -> str:
        devices = tuple(BlockDevice(size_gib=one, delete_on_termination=True) for one in sizes)
        return self.profile("data", volumes=devices)

    def stateful(self, count: int = 2, **config: Any) -> str:
        group = self.create(count, self.profile_id, **{"keep": "volumes", **config})
        self.settled(group, count)
        return group

    def volumes(self) -> dict[str, Any]:
        return {one.id: one for one in self.world.rows(schema.volumes)}

    def attached(self) -> dict[str, str]:
        """Volume → the server that it is attached to."""
        found = self.world.rows(schema.volume_attachments)
        return {one.volume_id: one.server_uuid for one in found}

    def places(self) -> dict[int, list[str]]:
        return {one.member_index: list(one.volumes) for one in self.members()}

    def replaced(self, group: str, former: str, count: int = 2) -> str:
        """Wait until a server has another one in its place; return that."""

        def others() -> list[str]:
            return [one.server_uuid for one in self.members() if one.server_uuid]

        def seen() -> tuple[Any, ...]:
            opened = [(one.action, one.state, one.not_before) for one in self.open()]
            return former in others(), len(others()), opened

        self.world._wait(seen, lambda found: found[:2] == (False, count))
        self.settled(group, count)
        return str(self.members()[0].server_uuid)

    def delete(self, uuid: str) -> None:
        self.world.conductor.runner.submit(self.rpc._accept.act(self.world.ctxt, uuid, "delete"))


@pytest.fixture
def stateful(tmp_path: Path) -> Iterator[Stateful]:
    made = Stateful(tmp_path)
    yield made
    made.close()


def test_a_place_has_volumes_that_are_its_project_s(stateful: Stateful) -> None:
    stateful.stateful()
    places, found = stateful.places(), stateful.volumes()
    assert [found[some[0]].name for some in places.values()] == [
        "web-1-volume-1",
        "web-2-volume-1",
    ]
    assert {one.project_id for one in found.values()} == {"p"}
    assert stateful.attached() == {one.volumes[0]: one.server_uuid for one in stateful.members()}
    kept = stateful.world.rows(schema.volume_attachments)
    assert {one.delete_on_termination for one in kept} == {False}


def test_a_server_that_its_user_deletes_leaves_its_volumes_to_the_next(stateful: Stateful) -> None:
    group = stateful.stateful()
    before, former = stateful.places(), stateful.members()[0].server_uuid
    stateful.delete(former)
    new = stateful.replaced(group, former)
    assert stateful.places() == before
    assert stateful.attached()[before[1][0]] == new
    assert stateful.agents.makes == 2


def test_one_in_error_does_too(stateful: Stateful) -> None:
    group = stateful.stateful()
    before, former = stateful.places(), stateful.members()[0].server_uuid
    values = {"vm_state": "error"}
    of = schema.servers
    stateful.world.conductor.store.run(
        lambda c: c.execute(of.update().where(of.c.uuid == former).values(values))
    )
    stateful.rpc.tend_group(stateful.world.ctxt, group, GroupAction.CHECK)
    new = stateful.replaced(group, former)
    assert (stateful.places(), stateful.attached()[before[1][0]]) == (before, new)


def test_another_profile_has_the_volumes_and_makes_what_it_has_more(stateful: Stateful) -> None:
    group = stateful.stateful()
    before = stateful.places()
    former = {one.server_uuid for one in stateful.members()}
    profile = stateful.of_volumes(2, 3)
    stateful.rpc.change_group(stateful.world.ctxt, group, GroupChanges(profile_id=profile))
    stateful.world._wait(
        lambda: (stateful.group(group).rolling, former & {*stateful.servers()}),
        lambda seen: seen == (False, set()),
    )
    stateful.settled(group, 2)
    after = stateful.places()
    assert {index: some[:1] for index, some in after.items()} == before
    assert sorted(one.size_gib for one in stateful.volumes().values()) == [2, 2, 3, 3]
    assert stateful.attached() == {
        volume: one.server_uuid for one in stateful.members() for volume in one.volumes
    }


def test_on_a_lost_node_they_are_waited_for(stateful: Stateful) -> None:
    world, down = stateful.world, schema.services.update()
    world.scheduler.hosts[:] = ["pve1"]
    group = stateful.stateful(1)
    before, former = stateful.attached(), stateful.members()[0].server_uuid
    world.scheduler.hosts[:] = ["pve2"]
    world.beat(lost="pve1")
    lost = schema.services.c.host == "pve1"
    world.conductor.store.run(lambda c: c.execute(down.values(forced_down=lost)))
    stateful.rpc.tend_group(world.ctxt, group, GroupAction.CHECK)

    def seen() -> tuple[str, str]:
        (member,) = stateful.members()
        stateful.hasten(group)
        return member.server_uuid, member.reason

    # Its record still has them, though nothing runs there.
    why = "Its node is lost, and its former server may still have its volumes: "
    world._wait(seen, lambda found: found[0] == former and found[1].startswith(why))
    assert (stateful.begun("create"), stateful.attached()) == (1, before)
    world.conductor.store.run(lambda c: c.execute(down.values(forced_down=False)))
    world.beat()
    world.make_due()
    world.conductor.runner.wake()
    new = stateful.replaced(group, former, 1)
    assert stateful.attached() == dict.fromkeys(before, new)
    assert stateful.agents.makes == 1


def test_a_volume_that_is_another_project_s_by_now_is_left(stateful: Stateful) -> None:
    group = stateful.stateful(1)
    (volume,) = stateful.volumes()
    stateful.world.conductor.store.run(
        lambda c: volume_rows.change(c, volume, project_id="others")
    )
    stateful.rpc.delete_group(stateful.world.ctxt, group, keep=False)
    stateful.world._wait(lambda: stateful.world.rows(schema.scaling_groups), lambda one: not one)
    assert [one.status for one in stateful.volumes().values()] == ["available"]


def test_volumes_are_deleted_with_the_place(stateful: Stateful) -> None:
    group = stateful.stateful()
    stateful.resize(group, 1)
    stateful.settled(group, 1)
    stateful.world._wait(lambda: len(stateful.volumes()), lambda seen: seen == 1)
    assert [[*stateful.volumes()]] == [*stateful.places().values()]
    stateful.rpc.delete_group(stateful.world.ctxt, group, keep=False)
    stateful.world._wait(
        lambda: (len(stateful.volumes()), len(stateful.servers()), len(stateful.open())),
        lambda seen: seen == (0, 0, 0),
    )
    assert stateful.members() == []


def test_a_group_that_lets_its_servers_go_leaves_the_volumes_to_them(stateful: Stateful) -> None:
    group = stateful.stateful()
    before = stateful.attached()
    stateful.rpc.delete_group(stateful.world.ctxt, group, keep=True)
    assert (stateful.members(), stateful.attached()) == ([], before)
    assert {one.status for one in stateful.volumes().values()} == {"in-use"}


def test_a_creation_that_fails_leaves_no_volume_of_its_own(stateful: Stateful) -> None:
    fails = iter([True])
    stateful.agents.broken = lambda _: next(fails, False)
    group = stateful.create(1, stateful.profile_id, keep="volumes")
    hasten_all(stateful, group, until=lambda: stateful.begun("create") == 2)
    stateful.settled(group, 1)
    stateful.world._wait(lambda: [*stateful.volumes()], lambda seen: len(seen) == 1)
    assert stateful.attached() == {stateful.places()[1][0]: stateful.members()[0].server_uuid}


def test_a_creation_that_fails_keeps_the_volumes_of_the_place(stateful: Stateful) -> None:
    group = stateful.stateful(1)
    before, former = stateful.places(), stateful.members()[0].server_uuid
    fails = iter([True])
    stateful.agents.broken = lambda _: next(fails, False)
    stateful.delete(former)
    hasten_all(stateful, group, until=lambda: stateful.begun("create") == 3)
    new = stateful.replaced(group, former, 1)
    assert (stateful.places(), stateful.attached()) == (before, {before[1][0]: new})


def test_a_volume_that_is_elsewhere_is_waited_for(stateful: Stateful) -> None:
    group = stateful.stateful(1)
    former, volume = stateful.members()[0].server_uuid, stateful.places()[1][0]
    store = stateful.world.conductor.store

    def becomes(status: VolumeStatus) -> None:
        store.run(lambda c: volume_rows.change(c, volume, status=status))

    # Its user has attached it to another server.
    store.run(lambda c: attachments.delete(c, volume, former))
    stateful.delete(former)
    stateful.world._wait(
        lambda: stateful.members()[0].reason,
        lambda seen: seen == f"Its volume {volume} is in-use: it gets a server once that is free.",
    )
    assert (stateful.begun("create"), stateful.group(group).failures) == (1, 0)
    becomes(VolumeStatus.AVAILABLE)
    stateful.hasten(group)
    stateful.settled(group, 1)
    assert stateful.attached() == {volume: stateful.members()[0].server_uuid}
    assert (stateful.begun("create"), stateful.agents.makes) == (2, 1)


def test_a_volume_that_its_user_deleted_is_made_again(stateful: Stateful) -> None:
    group = stateful.stateful(1)
    former, volume = stateful.members()[0].server_uuid, stateful.places()[1][0]
    world = stateful.world
    world.conductor.store.run(
        lambda c: (
            attachments.delete(c, volume, former),
            volume_rows.change(c, volume, status=VolumeStatus.AVAILABLE),
        )
    )
    VolumeEndpoint(world.conductor.cloud).delete_volume(world.ctxt, volume)
    stateful.delete(former)
    stateful.replaced(group, former, 1)
    assert stateful.places()[1] != [volume]
    world._wait(lambda: [*stateful.volumes()], lambda seen: seen == stateful.places()[1])


def test_without_the_option_volumes_are_as_the_profile_says(stateful: Stateful) -> None:
    group = stateful.create(1, stateful.profile_id)
    (former,) = stateful.settled(group, 1)
    (volume,) = stateful.volumes()
    assert stateful.places() == {1: []}
    stateful.delete(former)
    stateful.replaced(group, former, 1)
    stateful.world._wait(lambda: [*stateful.volumes()], lambda seen: len(seen) == 1)
    assert volume not in stateful.volumes()

"""Groups: a conductor that dies at any commit leaves neither a second member nor one too few."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common import ids
from common.messages.facts import StorageFacts
from common.resources.groups import GroupAction
from conductor.rpc.groups import GroupChanges, NewGroup, NewProfile, Resize
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import BlockDevice, CreateServers, RequestedNetwork
from conductor.servers.groups import begin_group
from conductor.store.groups import catalog
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from db import schema
from tests.functional.conductor.harness import IMAGE
from tests.functional.conductor.takeover.begin import Story
from tests.functional.conductor.takeover.cloud import Cloud
from tests.functional.conductor.takeover.deaths import Takeover


def _do(cloud: Cloud, work: Callable[[Transaction], Any]) -> Any:
    return cloud.heir.store.run(work)


def _profile(cloud: Cloud, name: str) -> str:
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    new = NewProfile(name, {}, CreateServers(name="", flavor=flavor, image_id=IMAGE))
    which = (cloud.world.ctxt, new, ids.new_uuid())
    made: str = _do(cloud, lambda c: catalog.create_profile(c, *which))
    return made


def _create(cloud: Cloud) -> Operation:
    new = NewGroup("web", _profile(cloud, "a"), 2, 0, 4, 3600)
    conductor, which = cloud.world.conductor.cloud, (cloud.world.ctxt, new, ids.new_uuid())
    _, operation = _do(cloud, lambda c: begin_group.create(conductor, c, *which))
    found: Operation = operation
    return found


def _group(cloud: Cloud) -> str:
    """One with two members that work."""
    operation = _create(cloud)
    cloud.work_off(cloud.heir, operation)
    return operation.resource_id


def _about(begin: Callable[..., Any], *given: Any, **more: Any) -> Callable[[Cloud], Operation]:
    """Begins something about a group that works."""

    def story(cloud: Cloud) -> Operation:
        group, conductor = _group(cloud), cloud.world.conductor.cloud
        found: Operation = _do(
            cloud, lambda c: begin(conductor, c, cloud.world.ctxt, group, *given, **more)
        )
        return found

    return story


def _resize(action: GroupAction, by: int) -> Callable[[Cloud], Operation]:
    return _about(begin_group.resize, Resize(action, begin_group.CHANGE, by))


def _update(cloud: Cloud) -> Operation:
    profile = _profile(cloud, "b")
    return _about(begin_group.change, GroupChanges(profile_id=profile))(cloud)


def _members(cloud: Cloud) -> list[str]:
    rows = cloud.world.rows(schema.scaling_members)
    return [one.id for one in sorted(rows, key=lambda one: (one.member_index or 99, one.id))]


def _with_members(
    begin: Callable[..., Any], named: Callable[[list[str]], Any], **more: Any
) -> Callable[[Cloud], Operation]:
    """Begins something about members after one was taken out of its group."""

    def story(cloud: Cloud) -> Operation:
        group, conductor = _group(cloud), cloud.world.conductor.cloud
        which = (cloud.world.ctxt, group)
        taken = [_members(cloud)[1]]
        operation = _do(
            cloud,
            lambda c: begin_group.take_out(conductor, c, *which, taken, destroy=False),
        )
        cloud.work_off(cloud.heir, operation)
        given = named(_members(cloud))
        found: Operation = _do(cloud, lambda c: begin(conductor, c, *which, given, **more))
        return found

    return story


def _policy(cloud: Cloud) -> Operation:
    return _about(begin_group.begin, GroupAction.POLICY)(cloud)[1]  # type: ignore[index,no-any-return]


def _steer(cloud: Cloud) -> Operation:
    """It is reverted while nothing of it has begun."""
    profile = _profile(cloud, "b")
    group, conductor = _group(cloud), cloud.world.conductor.cloud
    which = (cloud.world.ctxt, group)
    changes = GroupChanges(profile_id=profile)
    _do(cloud, lambda c: begin_group.change(conductor, c, *which, changes))
    found: Operation = _do(cloud, lambda c: begin_group.steer(conductor, c, *which, "roll_back"))
    return found


def _recover(cloud: Cloud) -> Operation:
    group, conductor = _group(cloud), cloud.world.conductor.cloud
    member = _members(cloud)[0]
    del group
    found: Operation = _do(
        cloud, lambda c: begin_group.recover_member(conductor, c, cloud.world.ctxt, member)
    )
    return found


def _lost(cloud: Cloud) -> Operation:
    """A member's node is lost: what follows began with that."""
    cloud.world.scheduler.hosts[:] = ["pve1"]
    group = _group(cloud)
    cloud.world.scheduler.hosts[:] = ["pve2"]
    resized, which = Resize(GroupAction.RESIZE, begin_group.CHANGE, 1), cloud.world.ctxt
    conductor = cloud.world.conductor.cloud
    operation = _do(cloud, lambda c: begin_group.resize(conductor, c, which, group, resized))
    cloud.work_off(cloud.heir, operation)
    cloud.lose("pve1")
    found: Operation = _do(
        cloud, lambda c: begin_group.begin(conductor, c, which, group, GroupAction.CHECK)
    )[1]
    return found


def _create_stateful(cloud: Cloud) -> Operation:
    """One with two members, whose places have a volume and a port each."""
    cloud.world.storages.append(StorageFacts("data", "rbd", True, True, 1000, 900, ("images",)))
    cloud.world.beat()
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    data = (BlockDevice(size_gib=2, delete_on_termination=True),)
    wired = (RequestedNetwork(ids.named("network", "vmbr0")),)
    request = CreateServers(name="", flavor=flavor, image_id=IMAGE, volumes=data, networks=wired)
    profile = (cloud.world.ctxt, NewProfile("data", {}, request), ids.new_uuid())
    made = _do(cloud, lambda c: catalog.create_profile(c, *profile))
    new = NewGroup("db", made, 2, 0, 4, 3600, {}, {"micronova.keep": "volumes,ports"})
    conductor, which = cloud.world.conductor.cloud, (cloud.world.ctxt, new, ids.new_uuid())
    found: Operation = _do(cloud, lambda c: begin_group.create(conductor, c, *which))[1]
    return found


def _about_stateful(begin: Callable[..., Any], *given: Any, **more: Any) -> Story:
    def story(cloud: Cloud) -> Operation:
        operation = _create_stateful(cloud)
        cloud.work_off(cloud.heir, operation)
        conductor, group = cloud.world.conductor.cloud, operation.resource_id
        found: Operation = _do(
            cloud, lambda c: begin(conductor, c, cloud.world.ctxt, group, *given, **more)
        )
        return found

    return story


def _keep_stateful(cloud: Cloud) -> Operation:
    """A member that has a volume of its place is deleted by its user."""
    cloud.work_off(cloud.heir, _create_stateful(cloud))
    uuid = next(one.server_uuid for one in cloud.world.rows(schema.scaling_members))
    return cloud.act(cloud.world.row(uuid), "delete")


def _keep(cloud: Cloud) -> Operation:
    """A member is deleted by its user: what follows began with the end of that."""
    _group(cloud)
    uuid = next(one.server_uuid for one in cloud.world.rows(schema.scaling_members))
    return cloud.act(cloud.world.row(uuid), "delete")


STORIES: Mapping[tuple[str, str], Story] = {
    (GroupAction.CREATE, "well"): _create,
    (GroupAction.UPDATE, "well"): _update,
    (GroupAction.RESIZE, "well"): _resize(GroupAction.RESIZE, 2),
    (GroupAction.SCALE_OUT, "well"): _resize(GroupAction.SCALE_OUT, 1),
    (GroupAction.SCALE_IN, "well"): _resize(GroupAction.SCALE_IN, -1),
    (GroupAction.CHECK, "well"): _about(begin_group.tend, GroupAction.CHECK),
    (GroupAction.RECOVER, "well"): _recover,
    (GroupAction.ADD_MEMBERS, "well"): _with_members(
        begin_group.add_members, lambda members: members[1:]
    ),
    (GroupAction.TAKE_OUT, "well"): _with_members(
        begin_group.take_out, lambda members: members[:1], destroy=True
    ),
    (GroupAction.REPLACE_MEMBERS, "well"): _with_members(
        begin_group.replace, lambda members: {members[0]: members[1]}
    ),
    (GroupAction.POLICY, "well"): _policy,
    (GroupAction.STEER, "well"): _steer,
    (GroupAction.KEEP, "well"): _keep,
    (GroupAction.CHECK, "lost"): _lost,
    (GroupAction.DELETE, "well"): _about(begin_group.delete, keep=False),
    (GroupAction.CREATE, "well-stateful"): _create_stateful,
    (GroupAction.KEEP, "well-stateful"): _keep_stateful,
    (GroupAction.SCALE_IN, "well-stateful"): _about_stateful(
        begin_group.resize, Resize(GroupAction.SCALE_IN, begin_group.CHANGE, -1)
    ),
    (GroupAction.DELETE, "well-stateful"): _about_stateful(begin_group.delete, keep=False),
}
#: how many servers each leaves
_LEFT = {
    GroupAction.RESIZE: 4,
    GroupAction.SCALE_OUT: 3,
    GroupAction.SCALE_IN: 1,
    GroupAction.DELETE: 0,
}


class TestGroups(Takeover):
    stories = STORIES
    dear = frozenset({(GroupAction.CHECK, "lost")})

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        left = 1 if action == GroupAction.TAKE_OUT else _LEFT.get(GroupAction(action), 2)
        if how == "lost":
            # Two that were on the lost node wait there to be removed.
            assert [one[:2] for one in ends["members"]] == [(1, "kept"), (2, "kept"), (3, "kept")]
            assert (ends["working"], ends["creates"], ends["vms"]) == (5, 5, 5)
            assert sum(state == "deleting" for _, state, _ in ends["servers"]) == 2
            return
        assert ends["working"] == left
        assert ends["vms"] == left
        if how == "well-stateful":
            # One volume and one port for each place, and none besides.
            assert ends["volumes"] == [("in-use", 2, False)] * left + [["attached"] * left]
            assert ends["ports"] == ([1] * left, left)

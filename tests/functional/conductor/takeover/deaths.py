"""A conductor dies at any commit of any flow: another one takes over, and it ends as if not.

For every table of stages, and for every transaction that its run commits, once right before and
once right after: what was begun is continued from what is committed alone. And a conductor that is
only slow, so that another one has ended all when it commits, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, ClassVar

import pytest

from common.resources import bulk_migrations
from common.resources.states import InternalAction, ResourceType
from common.resources.volumes import VolumeAction
from conductor import cloud as conductor_cloud
from conductor.images import remove_image
from conductor.plans import BulkPlan
from conductor.servers.groups import begin_group
from conductor.store.records import Operation
from conductor.store.servers import servers, vmids
from conductor.store.servers.migrations import OPEN as OPEN_MIGRATIONS
from db import schema
from tests.functional.conductor.harness import Died
from tests.functional.conductor.takeover.begin import Story
from tests.functional.conductor.takeover.cloud import ADMIN, VOLUMES, Cloud

Key = tuple[str, str]
"""An action, and how its story ends."""


class Takeover:
    """The stories of one kind of resource, with a conductor that dies, or is slow, in each."""

    stories: ClassVar[Mapping[Key, Story]]
    dear: ClassVar[Set[Key]] = frozenset()
    """Stories of the long tier: in every run is another story that has their stages."""

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        """Check what a story ends in where nobody dies; see ``Cloud.ending``."""
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Enumerate the stories for each test."""
        names, cases = {
            "test_another_conductor_ends_it_alike": (("action", "how", "both"), self._deadly()),
            "test_one_that_was_slow_changes_nothing": (("action", "how"), self._slow()),
            "test_a_delete_at_any_moment_leaves_nothing": (("action", "how"), self._deleted()),
        }[metafunc.function.__name__]
        metafunc.parametrize(names, list(cases))

    def _deadly(self) -> Iterator[Any]:
        """Each with one death at every commit, and in the long tier with both."""
        for one in self.stories:
            marks = pytest.mark.long if one in self.dear else ()
            yield pytest.param(*one, False, marks=marks, id="-".join(one))
            yield pytest.param(*one, True, marks=pytest.mark.long, id="-".join((*one, "both")))

    def _slow(self) -> Iterator[Any]:
        """Those that end well in every run, the others, which share most stages, in the long tier.

        So are those that carry out others' stories.
        """
        for action, how in self.stories:
            short = how == "well" and action not in bulk_migrations.ACTIONS
            marks = () if short else pytest.mark.long
            yield pytest.param(action, how, marks=marks, id=f"{action}-{how}")

    def _deleted(self) -> Iterator[Any]:
        """What a user's server does, and a delete may come between."""
        others = {"delete", "adopt", "release", "soft-delete", *bulk_migrations.ACTIONS}
        for action, how in self.stories:
            of_server = not isinstance(action, InternalAction | VolumeAction)
            if not of_server or action in others or "overtaken" in how:
                continue
            # What ends badly shares its stages, up to there, with what ends well.
            short = how.startswith("well") and (action, how) not in self.dear
            marks = () if short else pytest.mark.long
            yield pytest.param(action, how, marks=marks, id=f"{action}-{how}")

    @pytest.mark.sampled(6)
    def test_another_conductor_ends_it_alike(
        self, cloud: Cloud, action: str, how: str, both: bool
    ) -> None:
        operation = self.stories[action, how](cloud)
        begun = cloud.remember()
        cloud.mortal.live()
        cloud.work_off(cloud.world.conductor, operation)
        commits, alike = cloud.mortal.commits, cloud.ending(operation)
        assert commits >= 1
        self.expect(cloud, action, how, alike)
        for dies_at, before in _deaths(commits, both=both):
            begun()
            cloud.mortal.live(dies_at, before=before)
            with pytest.raises(Died):
                cloud.work_off(cloud.world.conductor, operation)
            cloud.mortal.live()
            cloud.work_off(cloud.heir)
            assert cloud.ending(operation) == alike, (dies_at, before)
        clear(cloud, operation)
        nothing_left(cloud)

    @pytest.mark.sampled(6)
    def test_one_that_was_slow_changes_nothing(self, cloud: Cloud, action: str, how: str) -> None:
        operation = self.stories[action, how](cloud)
        begun = cloud.remember()
        cloud.mortal.live()
        cloud.work_off(cloud.world.conductor, operation)
        commits, alike = cloud.mortal.commits, cloud.ending(operation)
        for slow_at in range(1, commits + 1):
            begun()
            cloud.mortal.slow(slow_at, lambda: cloud.work_off(cloud.heir))
            cloud.work_off(cloud.world.conductor, operation)
            assert cloud.ending(operation) == alike, slow_at
            cloud.mortal.live()
        clear(cloud, operation)
        nothing_left(cloud)


class ServerTakeover(Takeover):
    """The same of servers, which may be deleted at any moment."""

    with_volumes: ClassVar[Mapping[Key, list[Any]]] = {}
    """{story: what becomes of the volumes of a server that boots from one}; see
    ``Cloud.volumes``."""

    @pytest.mark.sampled(6)
    def test_a_delete_at_any_moment_leaves_nothing(
        self, cloud: Cloud, action: str, how: str
    ) -> None:
        """It is accepted right before any commit of what it overtakes."""
        operation = self.stories[action, how](cloud)
        begun = cloud.remember()
        cloud.mortal.live()
        cloud.work_off(cloud.world.conductor, operation)
        uuid = operation.server_uuid
        for at in range(1, cloud.mortal.commits + 1):
            begun()
            deletes: list[Operation] = []

            def overtake(made: list[Operation] = deletes) -> None:
                made.append(cloud.act(cloud.world.row(uuid), "delete"))

            cloud.mortal.slow(at, overtake)
            cloud.work_off(cloud.world.conductor, operation)
            cloud.work_off(cloud.heir)
            assert len(deletes) == 1
            ended = cloud.ending(operation)
            assert ended["server"][0] == "deleted", at
            assert {state for _, state in ended["operations"]} <= {"done", "failed"}, at
            assert not {*ended["resizes"]} & OPEN_MIGRATIONS, at
            left = {name: ended[name] for name in ("ports", "vmids", "claim", "others")}
            assert left == {"ports": 0, "vmids": [], "claim": None, "others": 0}, at
            if (action, how) in self.with_volumes:
                assert ended["volumes"] == [("available", 2, False), []], at
            clear(cloud, operation)
            nothing_left(cloud)


def _deaths(commits: int, *, both: bool) -> list[tuple[int, bool]]:
    """At which commit a conductor dies, and whether before it: otherwise in turn.

    What is committed is the same after one commit and before the next. What was done in between,
    a call or a message, is done for nothing or not at all.
    """
    every = [(at, before) for at in range(1, commits + 1) for before in (True, False)]
    return every if both else [(at, before) for at, before in every if before == (at % 2 == 1)]


def nothing_left(cloud: Cloud) -> None:
    """Check that nothing is reserved or claimed, and no VM is left."""
    tables = VOLUMES, schema.volume_snapshots, schema.templates
    held = {one.vmid for table in tables for one in cloud.world.rows(table)}
    for one in cloud.world.rows(schema.vmids):
        assert one.vmid in held or one.server_uuid or one.state != "reserved", one.vmid
    assert cloud.world.rows(schema.ports) == []
    assert cloud.world.placement.claims == {}
    assert cloud.vms == set()
    if any(
        one.action in {"createImage", "createBackup"}
        for one in cloud.world.rows(schema.operations)
    ):
        assert cloud.copies() == 0


def _delete_group(cloud: conductor_cloud.Cloud, ctxt: Any, group_id: str) -> Operation:
    def work(connection: Any) -> Operation:
        return begin_group.delete(cloud, connection, ctxt, group_id, keep=False)

    return cloud.store.run(work)


def clear(cloud: Cloud, operation: Operation) -> None:
    """Delete the server, if it still exists, so that quota and claims are as before."""
    # However long it takes, the agents are alive.
    cloud.world.beat()
    cloud.refused.clear()
    cloud.cleans_up = False
    cloud.goal = "pve2"
    cloud.world.scheduler.hosts[:] = ["pve1", "pve2"]
    if cloud.lost:
        cloud.lose("")
        cloud.work_off(cloud.heir)
    # A band of ten VMIDs is enough then.
    cloud.heir.store.run(lambda c: vmids.end_quarantines(c, -3600))
    if isinstance(operation.plan, BulkPlan):
        for move in operation.plan.moves:
            cloud.work_off(cloud.heir, cloud.act(cloud.world.row(move.server_uuid), "delete"))
    for group in cloud.world.rows(schema.scaling_groups):
        which = (cloud.heir.cloud, ADMIN, group.id)
        cloud.work_off(cloud.heir, _delete_group(*which))
    for one in cloud.world.rows(schema.scaling_members):
        # It was taken out of its group.
        cloud.work_off(cloud.heir, cloud.act(cloud.world.row(one.server_uuid), "delete"))
    if operation.resource_type != ResourceType.SERVER:
        return
    with cloud.world.conductor.store.read() as connection:
        server = servers.get(connection, operation.server_uuid)
    for one in cloud.world.rows(schema.images):
        if one.server_uuid is not None:
            remove_image.delete(cloud.heir.cloud, ADMIN, one.id)
    cloud.work_off(cloud.heir)
    if server.deleted_at is None:
        cloud.work_off(cloud.heir, cloud.act(server, "delete"))

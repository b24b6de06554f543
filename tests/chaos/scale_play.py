"""The scenario of a scaling group: it is created, grows, has its members replaced by those of
another profile, and once more by such whose places keep a volume and a port; it loses one to its
user, and shrinks.

Whatever strikes, it has as many servers as desired in the end, all of its profile, no index has
two, each has the volumes and ports of its place, and nothing is left once it is deleted.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from common import ids
from common.errors import MicronovaError
from common.resources.groups import GroupAction
from common.resources.states import OPEN_STATES
from conductor.rpc.groups import GroupChanges, NewGroup, NewProfile, Resize
from conductor.rpc.servers.servers import BlockDevice, CreateServers, RequestedNetwork
from db import schema
from tests.chaos.cloud import FLAVOR, Overdue
from tests.chaos.play import Play, worst
from tests.chaos.stage import Stage

FEW, MANY = 1, 2
LEFT_SECONDS = 20
KEPT = {"micronova.keep": "volumes,ports"}


class ScalePlay(Play):
    """One run."""

    def __init__(self, stage: Stage, scenario: str, number: int, image: int) -> None:
        super().__init__(stage, scenario, number, image)
        self._profile, self._next_profile, self._with_data = "", "", ""

    def prepare(self) -> None:
        """See ``Play``: there are profiles."""
        self._profile = self._made(self.name)
        self._next_profile = self._made(f"{self.name} next")
        data = BlockDevice(size_gib=1, delete_on_termination=True)
        self._with_data = self._made(f"{self.name} data", data)

    def _made(self, name: str, *volumes: BlockDevice) -> str:
        network = RequestedNetwork(ids.named("network", "vmbr0"))
        image = ids.named("image", self.image)
        request = CreateServers("", FLAVOR, image, networks=(network,), volumes=volumes)
        return self.stage.client.create_profile(
            self.stage.context(), NewProfile(name, {}, request)
        )

    def act(self) -> None:
        """See ``Play``."""
        self._create(FEW)
        self._rest()
        self._resize(MANY)
        self._rest()
        self._change(GroupChanges(profile_id=self._next_profile))
        self._rest()
        self._change(GroupChanges(profile_id=self._with_data, config=KEPT))
        self._rest()
        first = next((row for row in self.rows() if row.deleted_at is None), None)
        if first is not None:
            self.stage.act(first.uuid, "delete")
        self._rest()
        self._resize(FEW)

    def _create(self, count: int, config: Mapping[str, Any] = MappingProxyType({})) -> None:
        new = NewGroup(self.name, self._profile, count, 0, 4, 600, {}, dict(config))
        ask, client = self.stage._ask, self.stage.client
        ask("create_group", lambda: client.create_group(self.stage.context(), new))

    def _resize(self, size: int) -> None:
        group = self._group()
        if group is None:
            return
        asked = Resize(GroupAction.RESIZE, "EXACT_CAPACITY", size)
        client = self.stage.client
        self.stage._ask(
            "resize_group", lambda: client.resize_group(self.stage.context(), group.id, asked)
        )

    def _change(self, changes: GroupChanges) -> None:
        group = self._group()
        if group is None:
            return
        client = self.stage.client
        self.stage._ask(
            "change_group", lambda: client.change_group(self.stage.context(), group.id, changes)
        )

    def rows(self) -> list[Any]:
        """See ``Play``: all servers that the group has or had."""
        group = self._group()
        if group is None:
            return []
        columns = schema.servers.c
        query = sa.select(schema.servers).where(columns.member_of == group.id)
        return self.stage.rows(query.order_by(columns.id))

    def settled(self) -> str:
        """See ``Play``."""
        if self._group() is None:
            self.stage.settle()
            if self._group() is None:
                return "none"
        self._rest()
        return worst(self._alive())

    def kept(self) -> str:
        """Whether the group is as desired; it is deleted afterwards, and its servers with it."""
        group = self._group()
        if group is None:
            return ""
        self._until(lambda: not self._wrong(group.id))
        wrong = self._wrong(group.id)
        client = self.stage.client

        def gone() -> bool:
            if self._group() is not None and not self._open(group.id):
                with contextlib.suppress(MicronovaError):
                    client.delete_group(self.stage.context(), group.id, keep=False)
            return self._group() is None

        self.stage._ask(
            "delete_group",
            lambda: client.delete_group(self.stage.context(), group.id, keep=False),
        )
        self.stage.helped(gone)
        left: list[str] = []

        def none_left() -> bool:
            left[:] = self._left()
            return not left

        with contextlib.suppress(Overdue):
            self.stage.until(none_left, LEFT_SECONDS)
        return wrong or "; ".join(left)

    # --- inner

    def _group(self) -> Any:
        columns = schema.scaling_groups.c
        query = sa.select(schema.scaling_groups).where(columns.name == self.name)
        found = self.stage.rows(query)
        assert len(found) <= 1, f"one request made {len(found)} groups"
        return found[0] if found else None

    def _alive(self) -> list[Any]:
        return [row for row in self.rows() if row.deleted_at is None]

    def _open(self, group_id: str) -> list[Any]:
        columns = schema.operations.c
        query = sa.select(columns.id).where(
            columns.resource_id == group_id, columns.state.in_(OPEN_STATES)
        )
        return self.stage.rows(query)

    def _rest(self) -> None:
        """Wait until nothing is open about the group."""
        group = self._group()
        if group is not None:
            self._until(lambda: not self._open(group.id))

    def _until(self, check: Callable[[], Any]) -> None:
        self.stage.helped(check)

    def _wrong(self, group_id: str) -> str:
        """What is wrong while nothing is open; too many servers are wrong at any time."""
        group, alive = self._group(), self._alive()
        members = self._members(group_id)
        counts = Counter(one.member_index for one in members)
        if twice := [one for one, count in counts.items() if count > 1]:
            return f"two members have the index {twice}"
        if former := [one.member_index for one in members if one.profile_id != group.profile_id]:
            return f"members {former} are of another profile ({group.status_reason})"
        states = [row.vm_state for row in alive]
        if states != ["active"] * group.desired:
            return f"{states} of {group.desired} ({group.status}: {group.status_reason})"
        return self._misses(group, members)

    def _members(self, group_id: str) -> list[Any]:
        columns = schema.scaling_members.c
        query = sa.select(schema.scaling_members).where(columns.group_id == group_id)
        return self.stage.rows(query.order_by(columns.member_index))

    def _misses(self, group: Any, members: Sequence[Any]) -> str:
        """Volumes and ports that members lack, or that no member has."""
        keeps = int(group.config == KEPT)
        attachments = self.stage.rows(sa.select(schema.volume_attachments))
        users = {one.volume_id: one.server_uuid for one in attachments}
        users |= {one.id: one.server_uuid for one in self._ports()}
        wanted = {each: one.server_uuid for one in members for each in (*one.volumes, *one.ports)}
        counts = [(len(one.volumes), len(one.ports)) for one in members]
        if counts != [(keeps, keeps)] * len(members):
            return f"places keep {counts}"
        has = {
            one: users.get(one)
            for one in [*wanted, *(each.id for each in (*self._volumes(), *self._ports()))]
        }
        return "" if has == wanted else f"servers have {has}, places keep {wanted}"

    def _volumes(self) -> list[Any]:
        columns = schema.volumes.c
        named = columns.name.startswith(f"{self.name}-", autoescape=True)
        return self.stage.rows(sa.select(schema.volumes).where(named))

    def _ports(self) -> list[Any]:
        columns = schema.ports.c
        named = columns.name.startswith(f"{self.name}-", autoescape=True)
        return self.stage.rows(sa.select(schema.ports).where(named))

    def _left(self) -> list[str]:
        """Volumes and ports of places of a group that is deleted."""
        return [
            *(f"volume {one.name} is {one.status}" for one in self._volumes()),
            *(f"port {one.name} of {one.server_uuid or 'no server'}" for one in self._ports()),
        ]

"""The scenario of a group whose members are checked: one is found sick and is replaced, one is
rebuilt as its user asks, and one is replaced elsewhere as its node is lost for good; the node
comes back, with what it ran.

The agents' own checks find nothing here, as what fails in a member's time of grace does not
count: what they see is reported by the scenario, through a conductor as they do it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from common import clock
from common.context import RequestContext
from common.errors import MicronovaError
from common.messages.health import CheckResult, GuestHealth
from common.resources.groups import Repair
from common.rpc import events
from conductor.store.groups import checks
from db import schema
from tests.chaos.scale_play import MANY, ScalePlay

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
CHECKED = {
    "micronova.health_tcp_port": 80,
    "micronova.health_interval": 3600,
    "micronova.health_grace": 86_400,
}
NO_ANSWER = "Port 80 takes no connection."
SETTLED_SECONDS = 2 * 3600
#: as often it is looked at until both members were replaced
LOOKS = 24


class TendedPlay(ScalePlay):
    """One run, on three nodes: two of them are a quorum."""

    def act(self) -> None:
        """See ``Play``."""
        self._create(MANY, CHECKED)
        self._well()
        self._sicken()
        self._well()
        self._repair()
        self._well()
        self._lose_node()

    # --- inner

    def _repair(self) -> None:
        """The first member is rebuilt."""
        group = self._group()
        if group is None:
            return
        first = self._members(group.id)[0]
        client = self.stage.client
        self.stage._ask(
            "repair_member",
            lambda: client.repair_member(self.stage.context(), first.id, Repair.REBUILD),
        )
        self._until(lambda: not self._open(first.server_uuid))

    def _well(self) -> None:
        """Wait until nothing is open about the group; members that are new are found well."""
        if self._group() is not None:
            self._until(self._is_well)

    def _is_well(self) -> bool:
        group = self._group()
        self._report(CheckResult.WELL, lambda one: one.health is None)
        return not self._open(group.id)

    def _wrong(self, group_id: str) -> str:
        self._report(CheckResult.WELL, lambda one: one.health is None)
        return super()._wrong(group_id)

    def _sicken(self) -> None:
        """The first member is found sick, some time ago."""
        group = self._group()
        if group is None:
            return
        first = self._members(group.id)[0]

        def replaced() -> bool:
            now = self._members(group.id)[0]
            if now.server_uuid == first.server_uuid and now.health == CheckResult.WELL:
                # Its report was lost: an agent repeats it.
                self._report(CheckResult.SICK, lambda one: one.server_uuid == now.server_uuid)
            self._settle(group.id)
            return bool(now.server_uuid != first.server_uuid)

        self._until(replaced)

    def _settle(self, group_id: str) -> None:
        """What members were found to be has been so for long; then a sick one is repaired."""
        columns = schema.scaling_members.c
        mine = (columns.group_id == group_id, columns.health == CheckResult.SICK)
        values = {"health_at": clock.after(-SETTLED_SECONDS)}
        with self.stage.engine.begin() as connection:
            connection.execute(schema.scaling_members.update().where(*mine).values(**values))

    def _report(self, result: CheckResult, of: Callable[[Any], bool]) -> None:
        """Report what the checks of some members say, as their agents do."""
        group = self._group()
        wanted = {one.server_uuid for one in self._members(group.id) if of(one)} if group else {}
        if not wanted:
            return
        for row in self.stage.rows(sa.select(schema.hosts.c.worker).distinct()):
            with self.stage.engine.connect() as connection:
                asked = checks.of_worker(connection, row.worker)
            mine = [one for one in asked if one.server_uuid in wanted]
            if mine:
                text = NO_ANSWER if result == CheckResult.SICK else ""
                found = [GuestHealth(one.server_uuid, one.begins_at, result, text) for one in mine]
                self._say(row.worker, found)

    def _say(self, worker: str, found: list[GuestHealth]) -> None:
        conductor, said = events.to_conductor(self.stage.transport), events.ConductorEvents
        self.stage._ask(
            "report_health",
            lambda: conductor.call(
                self.stage.context(), said.report_health, worker=worker, found=found
            ),
        )

    def _lose_node(self) -> None:
        """The node of the last member loses power; an administrator says that nothing runs there,
        until it is back."""
        group = self._group()
        if group is None:
            return
        last = self._members(group.id)[-1]
        row = self.stage.server(last.server_uuid) if last.server_uuid else None
        if row is None or row.node is None:
            return
        self.stage.lost_nodes.append(row.node)
        fault = self.stage.simulator.fault(action="node-down", node=row.node)
        self._mark(row.host, down=True)

        def replaced() -> bool:
            self._report(CheckResult.WELL, lambda one: one.health is None)
            now = self._members(group.id)[-1]
            there = self.stage.server(now.server_uuid) if now.server_uuid else None
            return there is not None and there.uuid != row.uuid and there.vm_state == "active"

        self._until(replaced)
        self.stage.simulator.take_back(fault)
        self._mark(row.host, down=False)

    def _mark(self, host: str, *, down: bool) -> None:
        """As `openstack compute service set --down` does, repeated until it is recorded."""
        columns = schema.services.c
        query = sa.select(columns.uuid, columns.forced_down)
        query = query.where(columns.host == host, columns.binary == "nova-compute")
        (service,) = self.stage.rows(query)

        def marked() -> bool:
            if self.stage.rows(query)[0].forced_down == down:
                return True
            with contextlib.suppress(MicronovaError):
                self.stage.client.update_service(ADMIN, service.uuid, forced_down=down)
            return False

        self._until(marked)

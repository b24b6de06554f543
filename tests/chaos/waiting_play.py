"""The scenario of a build that waits for room: a place in a full server group is freed, and it is
built there."""

from __future__ import annotations

import contextlib
from typing import Any

import sqlalchemy as sa

from common.errors import MicronovaError
from common.resources.hints import WAIT
from common.resources.server_groups import Policy
from conductor.rpc.servers.server_groups import NewServerGroup
from db import schema
from tests.chaos.play import ENDS, Play
from tests.chaos.stage import Stage

SECONDS = 3600


class WaitingPlay(Play):
    """One run. Whatever strikes, the server that waits is built once there is room."""

    def __init__(self, stage: Stage, scenario: str, number: int, image: int) -> None:
        super().__init__(stage, scenario, number, image)
        hosts = [row.host for row in stage.rows(sa.select(schema.hosts.c.host))]
        self.full = [f"{self.name}-on-{host}" for host in sorted(hosts)]
        self.group = ""

    def prepare(self) -> None:
        """See ``Play``: each host has the one server of the group that it may have."""
        new = NewServerGroup("project", "user", self.name, Policy.ANTI_AFFINITY, {})
        self.group = self.stage.client.create_server_group(self.stage.context(), new)
        for name in self.full:
            self.stage.create(name, self.image, server_group=self.group)
        self.stage.until(
            lambda: all(
                (row := self._row(name)) and row.vm_state == "active" for name in self.full
            )
        )

    def act(self) -> None:
        """See ``Play``: one more waits, and then one of the others is deleted."""
        hints: Any = {WAIT: SECONDS}
        self.stage.create(self.name, self.image, server_group=self.group, scheduler_hints=hints)
        if self.state() or self._request_arrived():
            self.stage.until(self._waits_or_has_ended)
        self.stage.act(self._row(self.full[0]).uuid, "delete")

    def settled(self) -> str:
        """See ``Play``; a delete that was lost is asked for once more, as its sender would."""
        if not self.state() and not self._request_arrived():
            return "none"
        first = self._row(self.full[0])
        if first is not None and not self._goes(first.uuid):
            self.stage.settle()
            if not self._goes(first.uuid):
                self.stage.act(first.uuid, "delete")
        return str(self.stage.until(lambda: state if (state := self.state()) in ENDS else ""))

    def kept(self) -> str:
        """Whether nothing is left of those that waited, once the run is over."""
        with contextlib.suppress(MicronovaError):
            self.stage.client.delete_server_group(self.stage.context(), self.group)
        return ""

    # --- inner

    def _row(self, name: str) -> Any:
        return self.stage.named(name)

    def _is_active(self, name: str) -> bool:
        row = self._row(name)
        return row is not None and row.vm_state == "active"

    def _waits_or_has_ended(self) -> bool:
        rows = self.stage.rows(sa.select(schema.waiting_builds.c.server_uuid))
        waiting = {row.server_uuid for row in rows}
        return self.state() in ENDS or any(row.uuid in waiting for row in self.rows())

    def _goes(self, uuid: str) -> bool:
        """Whether it is deleted, or will be."""
        columns = schema.servers.c
        stands = columns.deleted_at.is_(None) & (
            sa.func.coalesce(columns.task_state, "") != "deleting"
        )
        return not self.stage.rows(sa.select(columns.uuid).where(columns.uuid == uuid, stands))

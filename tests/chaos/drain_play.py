"""The scenario of a drain: two servers leave a host, one after the other, while both run."""

from __future__ import annotations

import contextlib
from typing import Any

import sqlalchemy as sa

from common import ids
from common.context import RequestContext
from common.errors import Conflict, MicronovaError
from common.resources.states import OPEN_STATES, InternalAction
from conductor.rpc.servers.servers import CreateServers
from db import schema
from tests.chaos.cloud import BOUND_SECONDS, FLAVOR, Overdue
from tests.chaos.play import Play, worst
from tests.chaos.stage import Stage

SERVERS = 2
SOON_SECONDS = 20
ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)


class DrainPlay(Play):
    """One run. Whatever strikes, the drain ends; each server runs on its recorded host."""

    def __init__(self, stage: Stage, scenario: str, number: int, image: int) -> None:
        super().__init__(stage, scenario, number, image)
        self.names = [f"{self.name}-{number + 1}" for number in range(SERVERS)]
        self._lost_before = len(stage.lost_nodes)
        self._host = min(row.host for row in stage.rows(sa.select(schema.hosts.c.host)))

    def prepare(self) -> None:
        """See ``Play``: both servers are on the host, once schedulers know that it takes servers
        again since the last run."""
        self.stage.until(self._takes_servers)
        for name in self.names:
            self.stage.create(name, self.image, host=self._host)
        self.stage.until(lambda: [row.vm_state for row in self.rows()] == ["active"] * SERVERS)

    def act(self) -> None:
        """See ``Play``. A host whose agent has just died is not drained: that is an answer."""
        client, host = self.stage.client, self._host
        with contextlib.suppress(Conflict):
            self.stage._ask("drain", lambda: client.drain(ADMIN, host, 1, live_only=False))

    def rows(self) -> list[Any]:
        """See ``Play``."""
        columns = schema.servers.c
        return self.stage.rows(sa.select(schema.servers).where(columns.name.in_(self.names)))

    def settled(self) -> str:
        """See ``Play``."""
        if self._drain() is None:
            self._request_arrived()
        return str(self.stage.until(self._rest))

    def kept(self) -> str:
        """Whether the drain says what is so, and each VM runs where the record has its server."""
        wrong = ""

        def right() -> bool:
            nonlocal wrong
            wrong = self._wrong()
            return not wrong

        with contextlib.suppress(Overdue):
            self.stage.until(right, BOUND_SECONDS if self._lost_node() else SOON_SECONDS)
        return wrong or self._enable()

    # --- inner

    def _takes_servers(self) -> bool:
        image = ids.named("image", self.image)
        request = CreateServers(self.name, FLAVOR, image, force_host=self._host)
        try:
            [decision] = self.stage.client.preview_servers(ADMIN, request)
        except MicronovaError:
            return False
        return decision.host is not None

    def _drain(self) -> Any:
        """The drain that this run began, unless its request was lost."""
        (first, *_) = self.rows()
        columns = schema.operations.c
        query = sa.select(schema.operations).where(
            columns.action == InternalAction.DRAIN, columns.started_at > first.created_at
        )
        found = self.stage.rows(query)
        assert len(found) <= 1, f"one request began {len(found)} drains"
        return found[0] if found else None

    def _rest(self) -> str:
        """The worst vm_state when nothing is under way; empty before."""
        columns = schema.operations.c
        uuids = [row.uuid for row in self.rows()]
        mine = columns.resource_id.in_(uuids) | (columns.action == InternalAction.DRAIN)
        query = sa.select(columns.id).where(mine, columns.state.in_(OPEN_STATES))
        if self.stage.rows(query):
            return ""
        rows = self.rows()
        return "" if any(row.task_state is not None for row in rows) else worst(rows)

    def _wrong(self) -> str:
        self.stage.follow_remedies()
        drain, rows = self._drain(), self.rows()
        found = self.stage.differences()
        left = [row.name for row in rows if row.host == self._host]
        if drain is not None and drain.state == "done" and left:
            found.append(f"the drain is done, and {', '.join(left)} is there")
        if drain is not None and drain.state == "failed" and not left:
            found.append(f"the drain failed, and nothing is left: {drain.message}")
        vms = {vm["vmid"]: vm for vm in self.stage.simulator.state()["sim1"]["vms"]}
        for row in rows:
            vm = vms[row.vmid]
            there = (row.vm_state, vm["node"], vm["qmp"])
            if there not in {(state, row.node, qmp) for state, qmp in self._may_be()}:
                found.append(f"{row.name} is {row.vm_state} on {row.node}, its VM {vm}")
        return "; ".join(found)

    def _may_be(self) -> list[tuple[str, str]]:
        """vm_state and state of QEMU; where a node lost power, what ran there is stopped."""
        stopped = [("stopped", "stopped")] if self._lost_node() else []
        return [("active", "running"), *stopped]

    def _lost_node(self) -> bool:
        """Whether a node of this run lost power."""
        return len(self.stage.lost_nodes) > self._lost_before

    def _enable(self) -> str:
        """Have the host take servers again."""
        columns = schema.services.c
        mine = (columns.host == self._host) & (columns.binary == "nova-compute")

        def enabled() -> bool:
            [service] = self.stage.rows(sa.select(schema.services).where(mine))
            if service.disabled:
                with contextlib.suppress(MicronovaError):
                    self.stage.client.update_service(ADMIN, service.uuid, disabled=False)
            return not service.disabled

        self.stage.until(enabled)
        return ""

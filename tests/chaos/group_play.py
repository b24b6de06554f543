"""The scenario of a strict server group: its rule is written, completed, lost and written again
by the audit, and is deleted with the group. Beside it a request is refused, and a host is
introduced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import MicronovaError
from common.resources.server_groups import Policy
from conductor.rpc.refusals import Refused
from conductor.rpc.servers.server_groups import NewServerGroup
from db import schema
from tests.chaos.cloud import LEFT_DRIVE, Overdue
from tests.chaos.director import Step
from tests.chaos.dressing import CLOUD
from tests.chaos.play import ENDS, Play
from tests.chaos.stage import Stage

#: of the services
OPTIONS = {"proxmox:sim1": {"write_affinity_rules": "true"}}
#: what can't be written fails no build, nor what can't be removed a move: the audit does it
AUDITED = frozenset({"affinity_rule_incomplete", "affinity_rule_left", LEFT_DRIVE})

SERVERS = 3
SOON_SECONDS = 8
KEPT_SECONDS = 60


class GroupPlay(Play):
    """One run. All its servers are on one host: that of the group."""

    def __init__(self, stage: Stage, scenario: str, number: int, image: int) -> None:
        super().__init__(stage, scenario, number, image)
        self.names = [f"{self.name}-{number + 1}" for number in range(SERVERS)]
        self.group = ""

    def prepare(self) -> None:
        """See ``Play``: the group has a server."""
        new = NewServerGroup("project", "user", self.name, Policy.AFFINITY, {})
        self.group = self.stage.client.create_server_group(self.stage.context(), new)
        self._create(self.names[0])

    def act(self) -> None:
        """See ``Play``."""
        for name in self.names[1:]:
            self._create(name)
        self._lose_rule()
        self._audited()
        self._refuse()
        self._delete_group()
        self._delete_service()

    def rows(self) -> list[Any]:
        """See ``Play``: some of them may not have been made."""
        columns = schema.servers.c
        return self.stage.rows(sa.select(schema.servers).where(columns.name.in_(self.names)))

    def settled(self) -> str:
        """See ``Play``: nothing is waited for but the ends of builds."""
        return self.state()

    def kept(self) -> str:
        """What an audit finds, and whether the rule says what the record says."""
        wrong = ""

        def calm() -> bool:
            nonlocal wrong
            report = self._audited()
            wrong = self._wrong() or f"audit: {report}"
            return bool(report and report["clean"] and report["complete"] and not self._wrong())

        try:
            self.stage.until(calm, KEPT_SECONDS)
        except Overdue:
            return wrong
        with contextlib.suppress(MicronovaError):
            self.stage.client.delete_server_group(self.stage.context(), self.group)
        return ""

    # --- inner

    def _create(self, name: str) -> None:
        """Have a server built in the group, unless the request is lost, to whatever end."""
        self.stage.create(name, self.image, server_group=self.group)
        if self.stage.named(name) is not None or self._create_arrived(name):
            self.stage.until(lambda: (row := self.stage.named(name)) and row.vm_state in ENDS)

    def _create_arrived(self, name: str) -> bool:
        self._request_arrived()
        return self.stage.named(name) is not None

    def _lose_rule(self) -> None:
        """Somebody removes the rule by hand."""
        cluster = self.stage.simulator.cluster()
        with cluster.turn():
            if cluster.ha.rules.pop(self._rule, None) is not None:
                cluster.drop("ha-rule", self._rule)

    def _audited(self) -> dict[str, Any] | None:
        """The report of an audit; None: it came to nothing. Who died at one has no lease."""
        audits = schema.audits
        with contextlib.suppress(MicronovaError, Overdue):
            number = self.stage.client.begin_audit(self.stage.context())
            query = sa.select(audits).where(
                audits.c.id == number, audits.c.state.in_(("done", "failed"))
            )
            (row,) = self.stage.until(lambda: self.stage.rows(query), SOON_SECONDS)
            return row.report if row.state == "done" else None
        with self.stage.engine.begin() as connection:
            connection.execute(schema.leases.update().values(expires_at=clock.after(-1)))
        return None

    def _refuse(self) -> None:
        """The API reports a request that it refused."""
        now = clock.utcnow()
        denied = Refused("POST", f"/servers/{self.name}", 409, "no", now, now)
        self.stage._ask("refused", lambda: self.stage.client.refused(self.stage.context(), denied))
        columns = schema.refusals.c
        query = sa.select(schema.refusals).where(columns.path == denied.path)
        with contextlib.suppress(Overdue):
            self.stage.until(lambda: self.stage.rows(query), SOON_SECONDS)

    def _delete_group(self) -> None:
        context = self.stage.context()
        self.stage._ask(
            "delete_server_group",
            lambda: self.stage.client.delete_server_group(context, self.group),
        )
        with contextlib.suppress(Overdue):
            self.stage.until(lambda: not self._wrong(), SOON_SECONDS)

    def _delete_service(self) -> None:
        """The operator deletes the service of the host where nothing is; its agent lives on."""
        before = self._hosts()
        there = {row.host for row in self.rows()}
        (empty,) = sorted(set(before) - there)[-1:]
        service = self.stage.rows(
            sa.select(schema.services.c.uuid).where(
                schema.services.c.host == empty, schema.services.c.binary == "nova-compute"
            )
        )[0]
        self.stage._ask(
            "delete_service",
            lambda: self.stage.client.delete_service(self.stage.context(), service.uuid),
        )
        self.stage.until(
            lambda: set(self._hosts()) == set(before) and self.stage._hosts_are_known()
        )

    def _hosts(self) -> list[str]:
        return [row.host for row in self.stage.rows(sa.select(schema.hosts.c.host))]

    @property
    def _rule(self) -> str:
        return f"micronova-{CLOUD}-{self.group}"

    def _wrong(self) -> str:
        """What high availability knows that the record doesn't say, or the other way round."""
        state = self.stage.simulator.state()["sim1"]["ha"]
        named = {one["rule"]: set(one["resources"]) for one in state["rules"]}
        managed = {one["sid"] for one in state["resources"] if self.group in str(one["options"])}
        groups = schema.server_groups
        there = self.stage.rows(sa.select(groups).where(groups.c.uuid == self.group))
        rows = [row for row in self.rows() if row.vm_state == "active"] if there else []
        sids = {f"vm:{row.vmid}" for row in rows}
        rule = named.get(self._rule, set())
        lacking = sids - rule if len(sids) > 1 else set()
        left = (rule | managed) - sids
        return "; ".join(
            f"{what}: {', '.join(sorted(which))}"
            for what, which in (("no rule names", lacking), ("HA still knows", left))
            if which
        )


def new_steps(steps: Iterable[Step], others: Iterable[Step]) -> list[Step]:
    """The steps that only this scenario has; of its reads, since each is a look, the first."""
    known = {(step.kind, step.name) for step in others}
    return [
        step
        for step in steps
        if (step.kind, step.name) not in known
        and not (step.name.startswith("GET ") and step.number > 1)
    ]

"""What a test asks of a cloud that it breaks, and how it looks at it: in processes or in one."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.context import RequestContext
from common.errors import MicronovaError, Unavailable
from common.messages.reports import Category
from common.resources.states import OPEN_STATES
from conductor.rpc import ConductorRpc
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from db import schema
from placement.client import PlacementClient
from simulator.server import Simulator
from tests.chaos import clean, operator_hand

BOUND_SECONDS = 120
"""No operation may take longer, whatever happens; many times what the slowest one takes."""

LOOK_SECONDS = 0.03
HELP_SECONDS = 0.15
IMAGE = "cirros"
FLAVOR = FlavorSnapshot("1", "m1.nano", 1, 128, 1)
#: what audits find of a config drive that a move could not remove
LEFT_DRIVE = "config_drive_left_behind"


class Overdue(AssertionError):
    """What must happen did not, within the bound."""


class Cloud:
    """Requests go to the conductors as the API sends them; answers are read from the database."""

    client: ConductorRpc
    engine: sa.Engine
    simulator: Simulator
    placement: PlacementClient

    def __init__(self) -> None:
        self.followed: list[str] = []
        """Remedies that the operator has carried out."""
        self.operator: Callable[[str], bool] = self._by_hand
        """Carries a remedy out; returns whether it was still to be done."""
        self.unanswered: list[str] = []
        """Requests that nobody answered."""
        self._expected: set[tuple[str, str]] = set()
        self.may_heal: frozenset[str] = frozenset()
        """Kinds of findings that it is the audit's part to heal, which nobody else does."""

    # --- its end

    def expect(self, kind: str, subject: str) -> None:
        """A finding that is to be there at the end: the audit that ends a cloud asks for it."""
        self._expected.add((kind, subject))

    def require_clean(self) -> None:
        """The last assertion of every cloud: when all servers are deleted, nothing is left.

        So say the tests' own eyes and the conductor's audit, which must never have had to heal
        anything. Whatever was ordered to fail is taken back before.
        """
        self.calm()
        problem = self.clear_away() or self.audit_problem()
        assert problem == "", problem

    def calm(self) -> None:
        """Nothing fails any more on purpose."""
        self.simulator.clear_faults()

    # --- asking

    def context(self) -> RequestContext:
        """A user of a project."""
        return RequestContext(user_id="user", project_id="project", roles=["member"])

    def create(
        self,
        name: str,
        image: str = IMAGE,
        count: int = 1,
        host: str | None = None,
        network: str = ids.named("network", "vmbr0"),
        **more: str,
    ) -> None:
        """Ask for servers; the request may be lost.

        ``image`` is a file's name, or the id of what was uploaded.
        """
        request = CreateServers(
            name,
            FLAVOR,
            image if ids.is_uuid(image) else ids.named("image", image),
            min_count=count,
            max_count=count,
            networks=(RequestedNetwork(network),),
            force_host=host,
            # As the API does: whichever conductors are asked, it is created once.
            uuids=tuple(ids.new_uuid() for _ in range(count)),
            **more,  # type: ignore[arg-type]
        )
        self._ask("create_servers", lambda: self.client.create_servers(self.context(), request))

    def act(self, uuid: str, action: str, **asked: str) -> None:
        """Ask for an action on a server."""
        self._ask("act", lambda: self.client.act(self.context(), uuid, action, asked))

    def _ask(self, method: str, call: Callable[[], Any]) -> None:
        try:
            call()
        except Unavailable as error:
            self.unanswered.append(f"{method}: {error.message}")

    # --- looking

    def rows(self, query: Any) -> list[Any]:
        """What the cloud database has."""
        with self.engine.connect() as connection:
            return list(connection.execute(query).all())

    def server(self, uuid: str) -> Any:
        """A server's row."""
        found = self.rows(sa.select(schema.servers).where(schema.servers.c.uuid == uuid))
        return found[0] if found else None

    def named(self, name: str) -> Any:
        """The row of the one server of that name, if there is one."""
        found = self.rows(sa.select(schema.servers).where(schema.servers.c.name == name))
        assert len(found) <= 1, f"one request made {len(found)} servers"
        return found[0] if found else None

    def alive(self) -> list[Any]:
        """Servers that are not deleted."""
        return self.rows(sa.select(schema.servers).where(schema.servers.c.deleted_at.is_(None)))

    def open_operations(self) -> list[Any]:
        """What is not at its end."""
        columns = schema.operations.c
        return self.rows(sa.select(schema.operations).where(columns.state.in_(OPEN_STATES)))

    def faults(self, uuid: str) -> list[Any]:
        """All faults of a server, the first one first."""
        columns = schema.faults.c
        query = sa.select(schema.faults).where(columns.server_uuid == uuid).order_by(columns.id)
        return self.rows(query)

    def built(self, name: str, image: str = IMAGE, host: str | None = None) -> Any:
        """Have a server built; its row once the build has ended, well or not."""
        self.create(name, image, host=host)
        return self.until(lambda: (row := self.named(name)) and row.vm_state != "building" and row)

    def differences(self) -> list[str]:
        """See ``clean``."""
        with self.engine.connect() as connection:
            return clean.differences(connection, self.simulator.state(), self.placement)

    # --- time

    def nodes_are_well(self) -> bool:
        """Whether agents have seen every node well since the last one lost power."""
        seen = [row.facts for row in self.rows(sa.select(schema.hosts.c.facts))]
        return all(facts["online"] and facts["healthy"] for facts in seen)

    def until(self, check: Callable[[], Any], seconds: float = BOUND_SECONDS) -> Any:
        """Return the first true answer; pauses end early until then: nobody waits for minutes."""
        deadline = time.monotonic() + seconds
        pause, pauses_end = threading.Event(), time.monotonic() + HELP_SECONDS
        for turn in itertools.count(1):
            answer = check()
            if answer:
                return answer
            now = time.monotonic()
            if now > deadline:
                raise Overdue(f"not within {seconds} s: {answer!r}; {self.progress()}")
            if now > pauses_end:
                self.end_pauses()
                pauses_end = now + HELP_SECONDS
            # What takes long is not looked at often: that would keep busy what it waits for.
            pause.wait(min(LOOK_SECONDS * turn, HELP_SECONDS))
        return None

    def progress(self) -> str:
        """What is under way, for a failure's text."""
        lines = [
            f"operation {row.id} ({row.action}) {row.state}, attempt {row.attempt}, "
            f"lease {row.lease_owner} until {row.lease_expires_at}, not before {row.not_before}"
            for row in self.open_operations()
        ]
        lines += [
            f"server {row.uuid} {row.vm_state}/{row.task_state} on {row.host}, "
            f"VM {row.vmid}, operation {row.operation_id}"
            for row in self.alive()
        ]
        lines += [
            f"server {row.server_uuid}, last fault of attempt {row.attempt}: {row.message} "
            f"(left {row.left}, remedy {row.remedy})"
            for row in self._last_faults()
        ]
        return "\n".join(["", *lines])

    def _last_faults(self) -> list[Any]:
        """The last fault of each operation under way."""
        columns = schema.faults.c
        working = sa.select(schema.operations.c.id).where(
            schema.operations.c.state.in_(OPEN_STATES)
        )
        last = sa.select(sa.func.max(columns.id)).where(columns.operation_id.in_(working))
        query = sa.select(schema.faults).where(columns.id.in_(last.group_by(columns.operation_id)))
        return self.rows(query)

    def end_pauses(self) -> None:
        """Every back-off is over."""
        columns = schema.operations.c
        self._set(columns.not_before > clock.utcnow(), not_before=clock.utcnow())

    def end_leases(self, *owners: str) -> None:
        """What these, by patterns, worked on is nobody's any more."""
        columns = schema.operations.c
        mine = sa.or_(*(columns.lease_owner.like(one) for one in owners))
        self._set(mine, lease_expires_at=clock.after(-1))

    def _set(self, which: Any, **values: Any) -> None:
        """Change open operations, but none that a transaction has in hand: it may be held."""
        columns = schema.operations.c
        query = sa.select(columns.id).where(columns.state.in_(OPEN_STATES), which)
        with self.engine.begin() as connection:
            found = list(connection.scalars(query.with_for_update(skip_locked=True)))
            if found:
                connection.execute(
                    schema.operations.update().where(columns.id.in_(found)).values(**values)
                )

    # --- the end

    def clear_away(self) -> str:
        """Delete every server; return what is left then, nothing in the best case."""
        self.delete_all()
        return self.left()

    def delete_all(self) -> None:
        """Delete every server, and wait until nothing is under way any more."""
        there = self.alive()
        for row in there:
            self.gone(row.uuid)
        for row in there:
            self.helped(lambda uuid=row.uuid: self.gone(uuid))  # type: ignore[misc]
        self.helped(lambda: not self.open_operations())

    def left(self) -> str:
        """Every difference that does not go away by itself."""
        found: list[str] = []

        def nothing() -> bool:
            self.follow_remedies()
            found[:] = self.differences()
            return not found

        try:
            self.until(nothing, clean.SETTLE_SECONDS)
        except Overdue:
            return "; ".join(found)
        return ""

    def audited(self) -> dict[str, Any]:
        """The report of an audit that ran now: of the conductor itself, with its own eyes."""
        audit_id = self.client.begin_audit(self.context())
        audits = schema.audits

        def ended() -> Any:
            (row,) = self.rows(sa.select(audits).where(audits.c.id == audit_id))
            return row if row.state in ("done", "failed") else None

        row = self.until(ended)
        assert row.state == "done", row
        report: dict[str, Any] = row.report
        return report

    def audit_problem(self) -> str:
        """What an audit says is wrong, or had to heal in this cloud's whole life; or nothing."""

        def calm() -> Any:
            report = self.audited()
            return report if not report["in_flux"] and report["complete"] else None

        report = self.until(calm)
        columns = schema.findings.c
        found = self.rows(sa.select(schema.findings).where(columns.healed_at.is_(None)))
        healed = self.rows(sa.select(schema.findings).where(columns.healed_by.is_not(None)))
        assert report["clean"] == (not found), report
        kinds = {(str(row.kind), str(row.subject)): row for row in found}
        lines = [
            f"{row.kind} {row.subject}: {row.cause}"
            for what, row in kinds.items()
            if what not in self._expected
        ]
        lines += [f"{' '.join(what)} was not found" for what in self._expected - kinds.keys()]
        lines += [
            f"{row.kind} {row.subject} was healed: {row.cause}"
            for row in healed
            if row.kind not in self.may_heal and not self._left_drive(row)
        ]
        return "; ".join(lines)

    def _left_drive(self, row: Any) -> bool:
        """Whether it is a config drive on another node of a move, or on the node of a build, and
        may be left there: the node did not answer then, or until the server was deleted."""
        if row.kind != "config_drive_without_server" or LEFT_DRIVE not in self.may_heal:
            return False
        columns, faults = schema.migrations.c, schema.faults.c
        query = sa.select(columns.source_node, columns.dest_node)
        moves = self.rows(query.where(columns.server_uuid == row.server_uuid))
        silent = sa.select(faults.host).where(
            faults.server_uuid == row.server_uuid, faults.category == Category.NODE_UNHEALTHY
        )
        hosts = schema.hosts.c
        nodes = self.rows(sa.select(hosts.node).where(hosts.host.in_(silent)))
        return any(row.node in one for one in [*moves, *nodes])

    def delete(self, uuid: str) -> None:
        """Have a server deleted, however often that must be asked, and wait until it is."""
        self.until(lambda: self.gone(uuid))

    def gone(self, uuid: str) -> bool:
        """Whether a server is deleted; if nobody is at it, it is asked for again."""
        row = self.server(uuid)
        if row.deleted_at is not None:
            return True
        if row.task_state != "deleting":
            with contextlib.suppress(MicronovaError):
                self.client.act(self.context(), uuid, "delete")
        return False

    def _by_hand(self, remedy: str) -> bool:
        return operator_hand.follow(self.simulator.cluster(), remedy)

    def helped(self, check: Callable[[], Any]) -> Any:
        """Wait for something while the operator does what remedies say."""

        def checked() -> Any:
            self.follow_remedies()
            return check()

        return self.until(checked)

    def follow_remedies(self) -> None:
        """Carry out what faults print for the operator, where it is still to be done."""
        self._follow(schema.faults.c.remedy)

    def follow_findings(self) -> None:
        """Carry out what an audit prints for the operator."""
        self.audited()
        self._follow(schema.findings.c.remedy)

    def _follow(self, remedy: sa.ColumnElement[str | None]) -> None:
        for row in self.rows(sa.select(remedy).where(remedy.is_not(None)).distinct()):
            if self.operator(row.remedy):
                self.followed.append(row.remedy)

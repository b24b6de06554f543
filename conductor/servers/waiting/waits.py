"""Builds that find no room, and asked to wait for it."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Callable, Mapping, Sequence

from common import clock
from common.errors import Invalid, MicronovaError, StaleTransition
from common.log import logger
from common.resources import hints
from conductor.cloud import Cloud
from conductor.plans import CreatePlan
from conductor.servers.waiting.choice import AGAIN_SECONDS, Choice, choose
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import waiting
from conductor.store.servers.waiting import Amounts
from conductor.store.transactions import Transaction, after_commit
from conductor.sync import allocations

LOG = logger(__name__)

#: the periodic task that wakes who may fit, which news of room run at once
NAME = "wake_waiting"
#: its period, in those of the scan for operations that are due
SCANS = 2

_DISABLED = "COMPUTE_STATUS_DISABLED"

#: provider → its free room
Room = Mapping[str, Amounts]


def asked_seconds(cloud: Cloud, server: Server) -> int:
    """Return how long a build may wait for room; 0: not at all."""
    specs = server.flavor.get("extra_specs", {})
    try:
        asked = hints.wait_seconds(server.scheduler_hints, specs)
    except ValueError as error:
        # Of an extra spec: the API refuses a hint like this.
        LOG.warning("Server %s does not wait for room: %s.", server.uuid, error)
        return 0
    return min(asked, int(cloud.conf.conductor.wait_most_seconds))


def waited(operation: Operation) -> str:
    """Return for how long a build waited, as a sentence after others; empty: it did not."""
    since = operation.planned(CreatePlan).waits_since
    if since is None:
        return ""
    return f" It waited {int((clock.utcnow() - since).total_seconds())} s for room."


class Waits:
    """Has builds wait for room, and wakes them."""

    def __init__(self, cloud: Cloud, timer: Callable[[], float] = time.monotonic) -> None:
        self._cloud, self._timer = cloud, timer
        self._down: frozenset[str] = frozenset()
        self._found: Sequence[waiting.Waiting] = ()
        self._version: waiting.Version | None = None
        self._again_at = float("-inf")

    # --- a build begins to wait

    def room_for(self, server: Server) -> Room:
        """Return the hosts that have room for a build before it is decided on; empty for a build
        that does not wait. Hosts that then refuse it are asked again once they have more."""
        if not asked_seconds(self._cloud, server):
            return {}
        return self._room(allocations.whole(server))

    def kept_from(self, operation: Operation) -> tuple[str, ...]:
        """Return hosts that a build that waits may not have: they are kept for others."""
        if operation.planned(CreatePlan).waits_since is None:
            return ()
        with self._cloud.store.read() as connection:
            return waiting.kept_from(connection, operation.id)

    def begin(
        self, builds: Sequence[tuple[Operation, Server]], reason: str, room: Room
    ) -> str | None:
        """Have builds wait, together if they are several; return None once they do, or why not.

        Empty: it was not asked for.
        """
        seconds = asked_seconds(self._cloud, builds[0][1])
        if not seconds:
            return ""
        if all(_is_over(operation) for operation, _ in builds):
            return waited(builds[0][0])
        gang = builds[0][0].request_id if len(builds) > 1 else None
        if gang is not None and not has_room(room, allocations.whole(builds[0][1]), len(builds)):
            # No host refused one of them: there was too little for all.
            room = {}

        def work(connection: Transaction) -> str | None:
            if full := self._is_full(connection, builds):
                return full
            for operation, server in builds:
                self._put(connection, operation, server, seconds, reason, room, gang)
            return None

        why_not = self._cloud.store.run(work)
        if why_not is None:
            LOG.info("%d builds of %s wait for room.", len(builds), builds[0][0].request_id)
            # What was freed since the decision has woken nobody.
            self._cloud.news.awaited = True
            self._cloud.news.freed()
        return why_not

    def _is_full(
        self, connection: Transaction, builds: Sequence[tuple[Operation, Server]]
    ) -> str | None:
        options, (first, server) = self._cloud.conf.conductor, builds[0]
        if first.planned(CreatePlan).waits_since is not None:
            return None
        of_project, of_all = waiting.counts(connection, server.project_id, first.id)
        if of_project + len(builds) > options.waiting_of_project:
            return f" It does not wait: {of_project} servers of the project do already."
        if of_all + len(builds) > options.waiting_most:
            return " It does not wait: too many others do already."
        return None

    def _put(
        self,
        connection: Transaction,
        operation: Operation,
        server: Server,
        seconds: int,
        reason: str,
        room: Room,
        gang: str | None,
    ) -> None:
        now, plan = clock.utcnow(), operation.planned(CreatePlan)
        since = plan.waits_since or now
        until = plan.waits_until or now + datetime.timedelta(seconds=seconds)
        row = {
            "operation_id": operation.id,
            "server_uuid": server.uuid,
            "project_id": server.project_id,
            "gang": gang,
            "needs": allocations.whole(server),
            "zone": server.pinned_availability_zone,
            "since": since,
            "until": until,
            "refused": {host: dict(free) for host, free in room.items()},
            "tried_at": now,
        }
        waiting.put(connection, row)
        ledger.save(
            connection,
            operation.id,
            plan=dataclasses.replace(plan, waits_since=since, waits_until=until),
            message=f"It waits for room: {reason}",
            deadline=until + self._build_time,
        )
        leases.postpone(connection, operation.id, max(0.0, (until - now).total_seconds()))

    @property
    def _build_time(self) -> datetime.timedelta:
        return datetime.timedelta(seconds=int(self._cloud.conf.conductor.build_timeout_seconds))

    def placed(self, operation: Operation) -> None:
        """Note that a build that waited has a host: from now on its build has its usual time."""
        if operation.planned(CreatePlan).waits_since is None:
            return
        deadline = clock.utcnow() + self._build_time
        self._cloud.store.run(lambda c: ledger.save(c, operation.id, deadline=deadline))
        self._cloud.news.freed()

    # --- builds are woken

    def look(self) -> None:
        """Wake those that may fit into what is free; the periodic task."""
        with self._cloud.store.read() as connection:
            found = self._asleep(connection)
            over = waiting.over(connection) if found else []
            down = self._cloud.down(connection) if found else frozenset()
        self._cloud.news.awaited = bool(found)
        if not found:
            return
        changed = self._cloud.news.take_changed() or bool(self._down - down)
        self._down = down
        still = [one for one in found if one.operation_id not in over]
        if changed:
            still = [dataclasses.replace(one, refused={}) for one in still]
        choice = self._choose(still)
        if not (over or changed or choice):
            return
        # Refusals and kept hosts are no part of the version.
        self._version = None
        try:
            self._cloud.store.run(lambda c: self._write(c, choice, over, changed=changed))
        except StaleTransition:
            LOG.debug("Another conductor wakes who waits for room.")

    def _asleep(self, connection: Transaction) -> Sequence[waiting.Waiting]:
        """Return the rows; they are read again only where they have changed."""
        version = waiting.version(connection)
        if version != self._version:
            self._found, self._version = waiting.all_waiting(connection), version
        return self._found

    def _choose(self, found: Sequence[waiting.Waiting]) -> Choice:
        if not found:
            return Choice()
        try:
            room = self._room(_least(found))
        except MicronovaError as error:
            LOG.warning("Nobody who waits for room is woken: %s", error.message)
            return Choice()
        again = self._timer() >= self._again_at
        if again:
            self._again_at = self._timer() + AGAIN_SECONDS
        most = self._cloud.conf.conductor.overtake_most
        return choose(found, room, clock.utcnow(), most, again=again)

    def _write(
        self, connection: Transaction, choice: Choice, over: Sequence[int], *, changed: bool
    ) -> None:
        """Write who is woken. Raises StaleTransition where another conductor did at that time."""
        if over:
            waiting.delete(connection, over)
            after_commit(connection, self._cloud.wake)
        if changed:
            waiting.forget_refusals(connection)
        waiting.overtake(connection, choice.overtaken)
        waiting.keep(connection, choice.kept)
        if choice.woken:
            LOG.info("%d builds that wait for room are tried.", len(choice.woken))
            waiting.wake(connection, choice.woken, clock.utcnow())
            after_commit(connection, self._cloud.wake)

    def _room(self, least: Amounts) -> Room:
        """Return what the hosts that have so much have free."""
        candidates = self._cloud.placement.candidates
        try:
            found = candidates(least, forbidden=[_DISABLED], limit=None)
        except Invalid:
            # Placement knows no such trait, as no host was ever disabled; or no such class.
            try:
                found = candidates(least, limit=None)
            except Invalid:
                return {}
        return {
            uuid: {
                name: int(usage.capacity[number]) - int(usage.used[number])
                for name, usage in found.usages.items()
            }
            for number, uuid in enumerate(found.uuids)
        }


def has_room(room: Room, needs: Amounts, count: int) -> bool:
    """Return whether so many servers would fit. Pure."""
    places = (
        min(free.get(name, 0) // amount for name, amount in needs.items())
        for free in room.values()
    )
    return sum(places) >= count if needs else True


def _is_over(operation: Operation) -> bool:
    until = operation.planned(CreatePlan).waits_until
    return until is not None and until <= clock.utcnow()


def _least(found: Sequence[waiting.Waiting]) -> Amounts:
    """Return the least amount of each class that all of them need."""
    names = set(found[0].needs).intersection(*(one.needs for one in found))
    return {name: min(one.needs[name] for one in found) for name in names} or {"VCPU": 1}

"""Builds that find no room, and asked to wait for it."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from common import clock
from common.counting import counted
from common.errors import MicronovaError, StaleTransition
from common.log import logger
from common.resources import hints
from conductor.cloud import Cloud
from conductor.plans import CreateParams, CreatePlan
from conductor.servers.waiting import free_room
from conductor.servers.waiting.able import AbleHosts
from conductor.servers.waiting.choice import (
    AGAIN_SECONDS,
    Choice,
    choose,
    held_hosts,
    is_overdue,
    lacks_host,
    last_served,
)
from conductor.servers.waiting.free_room import Room
from conductor.servers.waiting.kept import kept_from
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import waiting
from conductor.store.servers.waiting import Amounts
from conductor.store.transactions import Transaction, after_commit
from conductor.sync import allocations

LOG = logger(__name__)

#: the periodic task that wakes builds which may fit; when room becomes free it runs at once
NAME = "wake_waiting"
#: its period, in those of the scan for operations that are due
SCANS = 2
#: seconds after which schedulers, too, have what an agent reported to conductors
_KNOWN_SECONDS = 10

#: what any host has that is not full
_ANY = {"VCPU": 1}


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


def waited(since: datetime.datetime | None) -> str:
    """Return for how long it was waited since then, as a sentence after others; empty: it was
    not."""
    if since is None:
        return ""
    return f" It waited {int((clock.utcnow() - since).total_seconds())} s for room."


class Waits:
    """Has builds wait for room, and wakes them."""

    def __init__(self, cloud: Cloud, timer: Callable[[], float] = time.monotonic) -> None:
        self._cloud, self._timer = cloud, timer
        self._able = AbleHosts(cloud, timer)
        self._down: frozenset[str] = frozenset()
        self._found: Sequence[waiting.Waiting] = ()
        self._version: waiting.Version | None = None
        self._again_at = float("-inf")
        self._known_at = float("inf")
        self._taken: collections.Counter[str] = collections.Counter()
        """Host → number of servers it got without a wait, which no choice has counted yet."""
        self._overtaken: collections.Counter[int] = collections.Counter()
        """Operation → how many overtook it that its row does not count yet."""

    # --- a build begins to wait

    def room_for(self, server: Server, kept: Collection[str]) -> Room:
        """Return the hosts that have room for a build, and how much; read before its decision.

        If such a host refuses the build, it is asked again only once it has more room. Hosts in
        ``kept`` (UUIDs) are kept for others and left out. Empty for a build that may not wait.
        """
        if not asked_seconds(self._cloud, server):
            return {}
        found = free_room.now(self._cloud, allocations.whole(server))
        return {uuid: free for uuid, free in found.items() if uuid not in kept}

    def kept_from(self, operations: Sequence[Operation]) -> Mapping[str, str]:
        """Return the hosts, UUID → name, that builds may not have: they are kept for others.

        An administrator who names a host gets it even if it is kept.
        """
        first = operations[0]
        if first.asked(CreateParams).force_host is not None:
            return {}
        waited = first.planned(CreatePlan).waits_since is not None
        return kept_from(self._cloud, [one.id for one in operations], waited=waited)

    def begin(
        self,
        builds: Sequence[tuple[Operation, Server]],
        reason: str,
        room: Room,
        short: Collection[str] = (),
    ) -> str | None:
        """Let builds begin to wait, several as one gang; return None, or why they do not wait.

        An empty reason: they did not ask for it. ``reason``: why no host was found. ``room``: see
        ``room_for``. ``short``: names of hosts whose room the decision found too small.
        """
        seconds = asked_seconds(self._cloud, builds[0][1])
        if not seconds:
            return ""
        if all(_is_over(operation) for operation, _ in builds):
            return waited(builds[0][0].planned(CreatePlan).waits_since)
        gang = builds[0][0].request_id if len(builds) > 1 else None
        if gang is not None and not free_room.has_room(
            room, allocations.whole(builds[0][1]), len(builds)
        ):
            # There was too little room for all of them: no host has refused a single one.
            room = {}

        def work(connection: Transaction) -> str | None:
            if full := self._is_full(connection, builds):
                return full
            lost = waiting.uuids_of(connection, short)
            refused = {uuid: free for uuid, free in room.items() if uuid not in lost}
            for operation, server in builds:
                self._put(connection, operation, server, seconds, reason, refused, gang)
            return None

        why_not = self._cloud.store.run(work)
        if why_not is None:
            LOG.info("%d builds of %s wait for room.", len(builds), builds[0][0].request_id)
            # Room that became free since the decision woke nobody, as they did not wait yet.
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
            others = counted(of_project, "server of the project does", "servers of the project do")
            return f" It does not wait: {others} already."
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
        since = plan.waits_since or operation.started_at
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

    def placed(self, operation: Operation, host: str) -> None:
        """Note that a build has a host, by UUID; if it waited, it has its usual time from now."""
        if operation.planned(CreatePlan).waits_since is None:
            self._cloud.news.taken(host)
            return
        deadline = clock.utcnow() + self._build_time
        self._cloud.store.run(lambda c: ledger.save(c, operation.id, deadline=deadline))
        self._cloud.news.freed()

    # --- builds are woken

    def look(self) -> None:
        """Wake those that may fit into what is free; the periodic task."""
        with self._cloud.store.read() as connection:
            found = self._asleep(connection)
            over = waiting.over(connection) if found else {}
            down = self._cloud.down(connection) if found else frozenset()
        self._cloud.news.awaited = bool(found)
        self._cloud.news.keeps = any(one.kept for one in found)
        self._taken.update(self._cloud.news.take_taken())
        if not found:
            self._taken.clear()
            self._overtaken.clear()
            return
        changed = self._is_changed(down)
        still = [one for one in found if one.operation_id not in over]
        if changed:
            still = [dataclasses.replace(one, refused={}) for one in still]
            self._able.forget()
        last = last_served(found, still, over)
        ended = [number for number in over if number not in last]
        served = {one.project_id: one.woken_at for one in last.values() if one.woken_at}
        choice = self._choose(still, served, changed=changed)
        if any(choice.kept.values()):
            # Set before the rows are written, so that no decision in between overlooks them.
            self._cloud.news.keeps = True
        if not (ended or changed or choice):
            return
        # Refusals are no part of the version, nor is which host is kept.
        self._version = None
        try:
            self._cloud.store.run(lambda c: self._write(c, choice, ended, changed=changed))
            if choice.overtaken:
                self._overtaken.clear()
        except StaleTransition:
            LOG.debug("Another conductor wakes who waits for room.")

    def _is_changed(self, down: frozenset[str]) -> bool:
        """Return whether hosts that refused a build may judge differently now.

        True when a change of hosts is reported, and once more when schedulers know of it.
        """
        changed = self._cloud.news.take_changed() or bool(self._down - down)
        known = self._timer() >= self._known_at
        if changed or known:
            self._known_at = self._timer() + _KNOWN_SECONDS if changed else float("inf")
        self._down = down
        return changed or known

    def _asleep(self, connection: Transaction) -> Sequence[waiting.Waiting]:
        """Return the rows; they are read again only where they have changed."""
        version = waiting.version(connection)
        if version != self._version:
            self._found, self._version = waiting.all_waiting(connection), version
        return self._found

    def _choose(
        self,
        found: Sequence[waiting.Waiting],
        served: Mapping[str, datetime.datetime],
        *,
        changed: bool,
    ) -> Choice:
        if not found:
            return Choice()
        now = clock.utcnow()
        again = self._timer() >= self._again_at
        # The nearest host for a build that waited long has not all that it needs yet.
        nearest = self._lacks_host(found, now, again=again)
        try:
            room = free_room.now(self._cloud, _ANY if nearest else _least(found))
            if not (room or again or nearest or changed):
                return Choice()
            found = self._able.of(found, room.keys(), self._down, self._overtaken)
        except MicronovaError as error:
            LOG.warning("Nobody who waits for room is woken: %s", error.message)
            return Choice()
        if again:
            self._again_at = self._timer() + AGAIN_SECONDS
        taken, self._taken = self._taken, collections.Counter()
        most = self._cloud.conf.conductor.overtake_most
        choice = choose(found, room, now, most, again=again, taken=taken, served=served)
        counted = self._overtaken + collections.Counter(choice.overtaken)
        if again or choice.woken or choice.kept:
            choice.overtaken = dict(counted)
        else:
            # If it were written now, each server that did not wait would have all rows read again.
            self._overtaken, choice.overtaken = counted, {}
        return choice

    def _lacks_host(
        self, found: Sequence[waiting.Waiting], now: datetime.datetime, *, again: bool
    ) -> bool:
        """Return whether a host could be kept for a build that has none.

        With ``again`` the last comparison of hosts is disregarded.
        """
        overdue = [one for one in found if self._is_overdue(one, now) and not one.is_deciding(now)]
        known = overdue if again else self._able.known(overdue)
        return lacks_host(known, held_hosts(found, now))

    def _is_overdue(self, one: waiting.Waiting, now: datetime.datetime) -> bool:
        more = self._overtaken[one.operation_id] + self._taken.total()
        return is_overdue(one, now, self._cloud.conf.conductor.overtake_most, more)

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


def _is_over(operation: Operation) -> bool:
    until = operation.planned(CreatePlan).waits_until
    return until is not None and until <= clock.utcnow()


def _least(found: Sequence[waiting.Waiting]) -> Amounts:
    """Return the least amount of each class that all of them need."""
    names = set(found[0].needs).intersection(*(one.needs for one in found))
    return {name: min(one.needs[name] for one in found) for name in names} or _ANY

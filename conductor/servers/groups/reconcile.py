"""Restores the number of a group's members: looks, writes what follows, then begins it.

One transaction looks at the group, with its open operations and its row locked, and writes into
its members' rows what is to become of them. What is begun on servers has transactions of its own,
which look again: a conductor that dies between them leaves rows that say what is missing.
No thread waits for a server: what happens to one makes the group's operation due.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from common import clock, ids
from common.context import RequestContext
from common.errors import (
    MicronovaError,
    NotFound,
    QuotaExceeded,
    StaleTransition,
    Unavailable,
)
from common.log import logger
from common.resources import groups, hints
from common.resources.groups import (
    DELETION_TYPE,
    HEALTH_TYPE,
    REPAIR,
    GroupAction,
    Health,
    MemberState,
    Options,
    Repair,
)
from common.resources.states import OperationState
from conductor.cloud import Cloud
from conductor.engine.settling import Settling
from conductor.engine.stages import Stage, Table, Work
from conductor.rpc.servers.servers import CreateServers
from conductor.servers.accept import Accept
from conductor.servers.create.begin_create import CreateAcceptance
from conductor.servers.groups import decide, places, seen, spread
from conductor.servers.groups.lost import LostMembers
from conductor.servers.groups.repairs import Repairs
from conductor.servers.groups.seen import Condition, Facts, Round
from conductor.store.groups import groups as store
from conductor.store.groups.groups import Group, Look, Member
from conductor.store.ledger import group_news, leases
from conductor.store.ledger import operations as ledger
from conductor.store.networks.pools import Within
from conductor.store.records import Operation
from conductor.store.transactions import Transaction

LOG = logger(__name__)


def load(_: Transaction, operation: Operation) -> Work:
    """Return the operation alone: the group's rows have all that is needed."""
    return Work(operation)


@dataclass(frozen=True)
class _Begins:
    """What a round begins on servers."""

    look: Look
    round: Round


class GroupFlow:
    """The flow of all operations about groups."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._creates = CreateAcceptance(cloud)
        self._accept = Accept(cloud)
        self._repairs = Repairs(cloud)
        self._lost = LostMembers(cloud)
        self._settling = Settling(cloud)

    def table(self) -> Table[Work]:
        """Return the flow's only stage: it looks, begins what it may, and looks again later."""
        stage = Stage("keep_count", self._go, final=True)
        return Table((stage,), on_superseded=None, owns=False, load=load)

    def _go(self, task: Work) -> None:
        found = self._cloud.store.run(lambda c: self._look(c, task))
        if found is None:
            return
        ctxt = _of_maker(found.look, task.operation)
        for uuid in found.round.deletes:
            self._begin(uuid, functools.partial(self._accept.act, ctxt, uuid, "delete"))
        for member, repair in found.round.repairs:
            by_policy = functools.partial(self._repairs.by_policy, ctxt, member, repair)
            self._begin(member.server_uuid, by_policy)
        self._replace_lost(task, ctxt, found.round.lost)
        for member_id in found.round.creates:
            if not self._create(task, member_id):
                break
        if found.round.added or found.round.changed or found.round.creates:
            self._cloud.wake()

    def _begin(self, server_uuid: str | None, begin: Callable[[], Operation | None]) -> None:
        """Begin something on a server; what is refused now is seen by the next look."""
        try:
            operation = begin()
        except (StaleTransition, Unavailable):
            raise
        except MicronovaError as error:
            LOG.info("Server %s is left as it is for now: %s", server_uuid, error.message)
            return
        if operation is not None:
            self._cloud.start(operation)

    def _replace_lost(self, task: Work, ctxt: RequestContext, lost: list[Member]) -> None:
        """Replace members on lost hosts, but those that high availability recovers."""
        given_up = {one.id for one in lost if not self._lost.recover(ctxt, one)}
        group_id = task.operation.resource_id

        def work(connection: Transaction) -> None:
            opened = store.open_operations(connection, group_id)
            look = self._read(connection, group_id)
            if look is None:
                return
            still = decide.after(facts(look, opened)).lost
            for one in still:
                if one.id in given_up:
                    values = {"state": MemberState.REPLACED, "reason": "Its node is lost."}
                    store.change_member(connection, one.id, ready_at=None, **values)
            group_news.wake(connection, group_id)

        if given_up:
            self._cloud.store.run(work)

    # --- a look

    def _read(self, connection: Transaction, group_id: str) -> Look | None:
        return store.look(connection, group_id, self._cloud.patience())

    def _look(self, connection: Transaction, task: Work) -> _Begins | None:
        number, group_id = task.operation.id, task.operation.resource_id
        opened = store.open_operations(connection, group_id)
        mine = next((one for one in opened if one.id == number), None)
        if mine is None or mine.lease_owner != self._cloud.name:
            raise StaleTransition(operation_id=number)
        look = self._read(connection, group_id)
        if look is None:
            store.close_all(connection, opened, OperationState.DONE, "The group is deleted.")
            return None
        look = dataclasses.replace(
            look, members=[self._with_reason(connection, one) for one in look.members]
        )
        made = decide.after(facts(look, opened))
        gone = [one for one in look.members if one.id in made.removed]
        ctxt = _of_maker(look, task.operation)
        places.delete(connection, self._cloud, ctxt, gone)
        self._write(connection, look, made)
        if made.over:
            self._end(connection, look, made, opened)
            return None
        self._go_on(connection, task, made, opened)
        return _Begins(look, made)

    @staticmethod
    def _with_reason(connection: Transaction, member: Member) -> Member:
        """Return a member, with the reason of a creation that has failed."""
        failed = seen.condition(member) == Condition.FAILED
        if not failed or member.state != MemberState.KEPT:
            return member
        why = store.last_words(connection, str(member.server_uuid))
        return dataclasses.replace(member, reason=why)

    @staticmethod
    def _write(connection: Transaction, look: Look, made: Round) -> None:
        now, group = clock.utcnow(), look.group
        for member_id, values in made.changed.items():
            if member_id not in made.removed:
                store.change_member(connection, member_id, updated_at=now, **values)
        store.remove(connection, made.removed)
        store.take_out(connection, made.out)
        columns = dict(made.group)
        if made.added:
            first = group.next_index
            profile = str(columns.get("profile_id", group.profile_id))
            store.add(
                connection,
                [new_member(group, index, profile) for index in range(first, first + made.added)],
            )
            columns["next_index"] = first + made.added
        if columns:
            store.change(connection, group.id, updated_at=now, **columns)

    def _end(
        self, connection: Transaction, look: Look, made: Round, opened: list[Operation]
    ) -> None:
        if look.group.deleting:
            store.delete(connection, look.group.id)
            store.close_all(connection, opened, OperationState.DONE, "The group is deleted.")
            return
        state = OperationState.FAILED if made.failed else OperationState.DONE
        reason = made.failed or str(made.group.get("status_reason", look.group.status_reason))
        store.close_all(connection, opened, state, reason)
        LOG.info("Group %s: %s", look.group.id, reason)

    def _go_on(
        self, connection: Transaction, task: Work, made: Round, opened: list[Operation]
    ) -> None:
        """Give the lease back: what happens to members makes the operation due."""
        group_id = task.operation.resource_id
        active = bool(made.added or made.changed or made.creates or made.deletes or made.lost)
        number = task.operation.id
        if active:
            seconds = datetime.timedelta(seconds=self._timeout(task.operation))
            ledger.save(connection, number, deadline=clock.utcnow() + seconds)
        elif task.late:
            reason = "It was not as desired in time; it is looked after further."
            store.close_all(connection, opened, OperationState.FAILED, reason)
            group_news.begin(connection, group_id, made.seconds)
            return
        # What it begins now it looks at again soon, in case this conductor dies before.
        begins = bool(made.creates or made.deletes or made.repairs or made.lost)
        soon = float(self._cloud.conf.conductor.scan_seconds)
        if made.lost:
            soon = max(soon, seen.LOOK_SECONDS)
        seconds_left = 0.0 if made.added or made.changed else made.seconds
        leases.postpone(connection, number, min(made.seconds, soon) if begins else seconds_left)

    @staticmethod
    def _timeout(operation: Operation) -> float:
        deadline = operation.deadline or operation.started_at
        return (deadline - operation.started_at).total_seconds()

    # --- what is begun

    def _create(self, task: Work, member_id: str) -> bool:
        """Create a member's server, unless it has one; return whether others may follow."""
        try:
            operation = self._settling.run(
                lambda c, within: self._create_in(c, task, member_id, within)
            )
        except (StaleTransition, Unavailable):
            raise
        except MicronovaError as error:
            self._note_refused(task, error)
            return False
        if operation is not None:
            self._cloud.start(operation)
        return True

    def _create_in(
        self, connection: Transaction, task: Work, member_id: str, within: Within
    ) -> Operation | None:
        look = self._read(connection, task.operation.resource_id)
        member = next((one for one in look.members if one.id == member_id), None) if look else None
        if look is None or member is None or member.server_uuid is not None:
            return None
        if member.id in look.taken:
            return None
        if member.state != MemberState.KEPT or not decide.may_create(facts(look)):
            return None
        ctxt = _of_maker(look, task.operation)
        keep = groups.options(look.group.config).keep
        new = places.NextServer(connection, self._cloud, ctxt, member, within, keep)
        request = new.request(self._request(connection, look, member))
        operation = self._creates.accept(connection, ctxt, request)
        now = clock.utcnow()
        uuid = operation.server_uuid
        values: dict[str, Any] = {"server_uuid": uuid, "profile_id": look.group.profile_id}
        values |= new.recorded(uuid)
        unseen = {"ready_at": None, "health": None, "health_reason": None, "repaired_at": None}
        store.change_member(connection, member.id, updated_at=now, **unseen, **values)
        return operation

    def _request(self, connection: Transaction, look: Look, member: Member) -> CreateServers:
        """Return the create of a member's server, as its group's profile says."""
        group = look.group
        request = store.profile_of(connection, group.profile_id)
        if request is None:
            raise NotFound(f"The profile '{group.profile_id}' is deleted.")
        options = groups.options(group.config)
        zones = (options.zones, look.zones, look.members, spread.by_zone)
        zone = spread.fewest(*zones) or request.availability_zone
        asked = dict(request.scheduler_hints)
        if cluster := _cluster(look, options, zone):
            asked[hints.CLUSTER] = cluster
        if seconds := _wait_seconds(look, request):
            asked[hints.WAIT] = str(seconds)
        named = {"cluster_id": group.id, "cluster_node_id": member.id}
        return dataclasses.replace(
            request,
            name=member.name,
            metadata={**request.metadata, **named},
            availability_zone=zone,
            scheduler_hints=asked,
            member_of=group.id,
        )

    def _note_refused(self, task: Work, error: MicronovaError) -> None:
        group_id = task.operation.resource_id

        def work(connection: Transaction) -> None:
            store.open_operations(connection, group_id)
            look = self._read(connection, group_id)
            if look is None:
                return
            group, now = look.group, clock.utcnow()
            if isinstance(error, QuotaExceeded):
                values = seen.refused(group.refusals, error.message, now)
            else:
                values = seen.failed(group.failures, error.message, now)
            store.change(connection, group_id, updated_at=now, **values)
            group_news.wake(connection, group_id)

        LOG.info("Group %s: a creation is refused: %s", group_id, error.message)
        self._cloud.store.run(work)


def _cluster(look: Look, options: Options, zone: str | None) -> str | None:
    """Return the cluster of Proxmox VE in which a new member of this zone is created."""
    there = spread.clusters_in(look.clusters, {zone})
    # A zone that the group names has its own share of the members.
    mine = [one for one in look.members if not options.zones or one.pinned_zone == zone]
    return spread.fewest(options.clusters, there, mine, spread.by_cluster)


def _wait_seconds(look: Look, request: CreateServers) -> int:
    """Return how long a new member waits for room; 0: as its profile says, or not at all."""
    group = look.group
    options = groups.options(group.config)
    if options.wait_seconds is not None:
        return options.wait_seconds
    said = hints.WAIT in request.scheduler_hints or hints.WAIT in request.flavor.extra_specs
    kept = sum(one.state != MemberState.LEAVING for one in look.members)
    # A member that nobody asked for evens out places: it does not wait.
    more = kept > group.desired and not group.rolling
    return 0 if said or more else group.default_wait_seconds or 0


def _of_maker(look: Look, operation: Operation) -> RequestContext:
    """Return the context for work on members, with the request ID of the group's operation.

    It has the rights of the user who made the group, even if an administrator asked for the work.
    """
    asked = {
        "request_id": operation.request_id,
        "global_request_id": operation.context.get("global_request_id"),
    }
    return RequestContext.from_message({**look.context, **asked})


def facts(look: Look, opened: list[Operation] | None = None) -> Facts:
    """Read the facts by which a round is decided."""
    by_type = {str(one["type"]): one for one in look.policies}
    options = groups.options(look.group.config)
    checks = groups.checks(options, by_type.get(HEALTH_TYPE))
    recoveries = [one for one in opened or () if one.action == GroupAction.RECOVER]
    asked = [Repair(one.context[REPAIR]) for one in recoveries if one.context.get(REPAIR)]
    return Facts(
        look.group,
        look.members,
        options,
        groups.deletion(by_type.get(DELETION_TYPE)),
        Health((asked[-1],)) if asked else groups.health(by_type.get(HEALTH_TYPE)),
        clock.utcnow(),
        checked=checks.is_any,
        settle_seconds=checks.interval_seconds + seen.SETTLE_SECONDS,
        away=look.away,
        usable=look.zones,
        clusters=look.clusters,
        taken=look.taken,
        recover=bool(recoveries),
    )


def new_member(group: Group, index: int, profile_id: str) -> dict[str, Any]:
    """Return the row of a member without a server."""
    return {
        "id": ids.new_uuid(),
        "group_id": group.id,
        "member_index": index,
        "project_id": group.project_id,
        "user_id": group.user_id,
        "name": f"{group.name}-{index}"[-255:],
        "profile_id": profile_id,
    }

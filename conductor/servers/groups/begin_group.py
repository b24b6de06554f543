"""Accepts what users ask of groups: each in one transaction, which begins an operation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Conflict, Invalid, NotFound, QuotaExceeded
from common.resources import groups
from common.resources import quotas as limits
from common.resources.groups import (
    REPAIR,
    UNLIMITED,
    WHILE,
    GroupAction,
    MemberState,
    Repair,
    Status,
)
from common.resources.states import OperationState, ResourceType
from common.rpc import deadlines
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import scope
from conductor.rpc.groups import GroupChanges, NewGroup, Resize
from conductor.servers.groups import seen
from conductor.servers.groups.reconcile import new_member
from conductor.store.groups import groups as store
from conductor.store.groups.groups import Group, Member
from conductor.store.ledger import operations as ledger
from conductor.store.quotas import quotas
from conductor.store.records import Operation
from conductor.store.transactions import Transaction

#: Senlin's adjustment types
EXACT, CHANGE, PERCENTAGE = (*("EXACT_CAPACITY", "CHANGE_IN_CAPACITY", "CHANGE_IN_PERCENTAGE"),)
_DONE = OperationState.DONE
#: the most members that a group may be asked to have
MOST_MEMBERS = 1000


class AlreadyBegun(Exception):
    """The call has come before, and begun an operation: a message may come twice."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _require_once(connection: Transaction, group_id: str) -> None:
    number = store.begun_by(connection, group_id, deadlines.call())
    if number is not None:
        raise AlreadyBegun(number)


def create(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    new: NewGroup,
    group_id: str,
) -> tuple[str, Operation]:
    """Write a group with its members, which have no servers yet. Raises AlreadyBegun."""
    _require_once(connection, group_id)
    quotas.lock(connection, str(ctxt.project_id))
    _require_quota(cloud, connection, str(ctxt.project_id))
    if store.profile_of(connection, new.profile_id) is None:
        raise NotFound(f"The profile '{new.profile_id}' could not be found.")
    check_size(new.desired, new.min_size, new.max_size)
    check_options(new.config)
    row = {
        "id": group_id,
        "project_id": ctxt.project_id,
        "user_id": ctxt.user_id,
        "name": new.name,
        "profile_id": new.profile_id,
        "desired": new.desired,
        "min_size": new.min_size,
        "max_size": new.max_size,
        "timeout_seconds": new.timeout_seconds,
        "meta": dict(new.metadata),
        "config": dict(new.config),
        "context": context_of(ctxt),
        "default_wait_seconds": groups.WAIT_SECONDS,
        "status": Status.CREATING,
        "status_reason": "Its members are being created.",
    }
    store.insert(connection, row)
    group = store.locked(connection, group_id, scope(ctxt))
    rows = [new_member(group, index, new.profile_id) for index in range(1, new.desired + 1)]
    store.add(connection, rows)
    store.change(connection, group_id, next_index=new.desired + 1)
    return group_id, _begin(cloud, connection, ctxt, group, GroupAction.CREATE)


def context_of(ctxt: RequestContext) -> dict[str, Any]:
    """Return the part of a request's context that later work for the group's user runs with."""
    kept = ctxt.to_message()
    of_request = ("request_id", "global_request_id", "asked", "traceparent", "remote_address")
    never = (*of_request, "only_look", "if_revision")
    return {name: value for name, value in kept.items() if name not in never} | {
        # An administrator's rights end with the request; the group may be worked on for years.
        "is_admin": False
    }


def _require_quota(cloud: Cloud, connection: Transaction, project_id: str) -> None:
    allowed = quotas.limits(connection, project_id, limits.of_groups(cloud.conf))
    limit, used = allowed[limits.GROUPS], store.count(connection, project_id)
    if 0 <= limit <= used:
        raise QuotaExceeded(
            f"Quota exceeded for groups: Requested 1, but already used {used} of {limit} groups",
            resource=limits.GROUPS,
            limit=limit,
            used=used,
            requested=1,
        )


def check_size(desired: int, least: int, most: int) -> None:
    """Raise Invalid, in Senlin's words, for a size that can't be."""
    if least < 0:
        raise Invalid(f"The min_size '{least}' must be at least 0.")
    if most != UNLIMITED and most < least:
        raise Invalid(
            f"The specified max_size ({most}) is less than the specified min_size ({least})."
        )
    if desired < least:
        raise Invalid(
            f"The specified desired_capacity ({desired}) is less than the specified min_size "
            f"({least})."
        )
    if most != UNLIMITED and desired > most:
        raise Invalid(
            f"The specified desired_capacity ({desired}) is greater than the specified max_size "
            f"({most})."
        )
    if desired > MOST_MEMBERS or most > MOST_MEMBERS:
        raise Invalid(
            f"Total number of nodes is {max(desired, most)}, which is more than {MOST_MEMBERS}."
        )


def check_options(config: Mapping[str, Any]) -> None:
    """Raise Invalid for options that can't be."""
    try:
        groups.options(config)
    except ValueError as error:
        raise Invalid(str(error)) from error


def _begin(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    group: Group,
    action: GroupAction,
    marks: Mapping[str, str] | None = None,
) -> Operation:
    """Write an operation that looks at the group at once, and the status it shows until then."""
    which = (ResourceType.GROUP, group.id)
    item = start.new(cloud, action, which, group.project_id, marks=marks)
    status = WHILE.get(action, Status.RESIZING)
    store.change(connection, group.id, status=status, updated_at=clock.utcnow())
    operation = ledger.insert(connection, ctxt, [item])[0]
    deadline = clock.after(group.timeout_seconds)
    ledger.save(connection, operation.id, deadline=deadline)
    return operation


def begin(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    group_id: str,
    action: GroupAction,
    marks: Mapping[str, str] | None = None,
) -> tuple[Group, Operation]:
    """Lock a group and begin an operation about it. Raises NotFound, Conflict, AlreadyBegun."""
    group = locked(connection, ctxt, group_id)
    _require_once(connection, group_id)
    return group, _begin(cloud, connection, ctxt, group, action, marks)


def locked(connection: Transaction, ctxt: RequestContext, group_id: str) -> Group:
    """Return a group that may be changed. Raises NotFound, Conflict."""
    group = store.locked(connection, group_id, scope(ctxt))
    if group.deleting:
        raise Conflict(f"The cluster '{group_id}' is being deleted.")
    return group


#: columns that let creations continue which failures had stopped
_AFRESH = {"failures": 0, "refusals": 0, "not_before": None, "halted": None}


def change(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    group_id: str,
    changes: GroupChanges,
) -> Operation:
    """Change a group's row; with another profile its members are replaced. Raises Invalid."""
    group, operation = begin(cloud, connection, ctxt, group_id, GroupAction.UPDATE)
    values: dict[str, Any] = {
        "name": changes.name,
        "timeout_seconds": changes.timeout_seconds,
        "meta": None if changes.metadata is None else dict(changes.metadata),
        "config": None if changes.config is None else dict(changes.config),
    }
    values = {name: value for name, value in values.items() if value is not None}
    check_options(values.get("config", group.config))
    profile = changes.profile_id
    if profile is not None and profile != group.profile_id:
        if store.profile_of(connection, profile) is None:
            raise NotFound(f"The profile '{profile}' could not be found.")
        values |= {"profile_id": profile, **_AFRESH, "status_reason": ""}
        values |= {"former_profile_id": group.profile_id, "paused": False}
        values |= {"rolling": not changes.profile_only}
    if not values:
        raise Invalid("No property needs an update.")
    store.change(connection, group_id, **values)
    return operation


def resize(
    cloud: Cloud, connection: Transaction, ctxt: RequestContext, group_id: str, asked: Resize
) -> Operation:
    """Change how many members are desired, and the limits."""
    group, operation = begin(cloud, connection, ctxt, group_id, GroupAction(asked.action))
    least = group.min_size if asked.min_size is None else asked.min_size
    most = group.max_size if asked.max_size is None else asked.max_size
    desired = sized(group.desired, asked)
    if not asked.strict:
        desired = max(least, desired if most == UNLIMITED else min(most, desired))
    elif asked.kind is None:
        desired = max(least, group.desired if most == UNLIMITED else min(most, group.desired))
    check_size(desired, least, most)
    store.change(connection, group_id, desired=desired, min_size=least, max_size=most)
    return operation


def sized(desired: int, asked: Resize) -> int:
    """Return the size that the request asks for; limits are not applied. Pure."""
    if asked.kind == EXACT:
        return int(asked.number)
    if asked.kind is None or not asked.number:
        return desired
    if asked.kind == CHANGE:
        return desired + int(asked.number)
    exact = desired * asked.number / 100
    step = math.copysign(max(abs(math.trunc(exact)), 1, asked.min_step), asked.number)
    return desired + int(step)


def tend(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    group_id: str,
    action: GroupAction,
    repair: Repair | None = None,
) -> Operation:
    """Check members, or repair them: by the named action, or by that of the health policy."""
    marks = {} if repair is None else {REPAIR: repair.value}
    _, operation = begin(cloud, connection, ctxt, group_id, action, marks)
    if action == GroupAction.RECOVER:
        store.change(connection, group_id, **_AFRESH)
    if repair is not None:
        store.forget_repairs(connection, group_id)
    return operation


def steer(
    cloud: Cloud, connection: Transaction, ctxt: RequestContext, group_id: str, verb: str
) -> Operation:
    """Pause a rolling update, have it go on, or revert it."""
    group, operation = begin(cloud, connection, ctxt, group_id, GroupAction.STEER)
    if verb == "roll_back":
        if group.former_profile_id is None:
            raise Conflict(f"The cluster '{group.name}' has no former profile.")
        values: dict[str, Any] = {
            "profile_id": group.former_profile_id,
            "former_profile_id": None,
            "rolling": True,
            "paused": False,
            "status_reason": "",
            **_AFRESH,
        }
    elif not group.rolling:
        raise Conflict(f"The cluster '{group.name}' is not being updated.")
    else:
        values = {"paused": verb == "pause", "status_reason": ""}
    store.change(connection, group_id, **values)
    return operation


def delete(
    cloud: Cloud, connection: Transaction, ctxt: RequestContext, group_id: str, *, keep: bool
) -> Operation:
    """Delete a group: its servers first, unless they are kept."""
    opened = store.open_operations(connection, group_id)
    group = store.locked(connection, group_id, scope(ctxt))
    _require_once(connection, group_id)
    if keep:
        operation = _begin(cloud, connection, ctxt, group, GroupAction.DELETE)
        look = store.look(connection, group_id)
        store.let_go(connection, look.members if look else ())
        store.delete(connection, group_id)
        words = "The group is deleted; its servers are kept."
        store.close_all(connection, [*opened, operation], _DONE, words)
        return operation
    operation = _begin(cloud, connection, ctxt, group, GroupAction.DELETE)
    store.change(connection, group_id, deleting=True, status_reason="")
    return operation


# --- members by name


def members_of(
    connection: Transaction, ctxt: RequestContext, wanted: Sequence[str], group_id: str | None
) -> list[Member]:
    """Return members by their IDs, all in this group; None: in none.

    Raises NotFound, Invalid.
    """
    found = [store.member(connection, one, scope(ctxt)) for one in dict.fromkeys(wanted)]
    if not found:
        raise Invalid("No node is named.")
    for one in found:
        if one.group_id != group_id:
            where = "in a cluster already" if group_id is None else "not a member of the cluster"
            raise Invalid(f"The node '{one.name}' is {where}.")
    return found


def add_members(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    group_id: str,
    wanted: Sequence[str],
) -> Operation:
    """Put members that are in no group into this one, which becomes larger by them."""
    group, operation = begin(cloud, connection, ctxt, group_id, GroupAction.ADD_MEMBERS)
    new = members_of(connection, ctxt, wanted, None)
    desired = group.desired + len(new)
    check_size(desired, group.min_size, group.max_size)
    _take_in(connection, group, new)
    store.change(connection, group_id, desired=desired)
    return operation


def _take_in(connection: Transaction, group: Group, new: Sequence[Member]) -> None:
    for one in new:
        if one.project_id != group.project_id:
            raise Conflict(f"The node '{one.name}' is another project's.")
        if one.server_uuid is None or one.deleted_at is not None:
            raise Conflict(f"The node '{one.name}' has no server.")
    store.take_in(connection, group.id, new, group.next_index)
    store.change(connection, group.id, next_index=group.next_index + len(new))


def take_out(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    group_id: str,
    wanted: Sequence[str],
    *,
    destroy: bool,
) -> Operation:
    """Take members out of a group, which becomes smaller by them."""
    group, operation = begin(cloud, connection, ctxt, group_id, GroupAction.TAKE_OUT)
    gone = members_of(connection, ctxt, wanted, group_id)
    staying = [one for one in gone if one.state != MemberState.LEAVING]
    desired = group.desired - len(staying)
    check_size(desired, group.min_size, group.max_size)
    store.change(connection, group_id, desired=desired)
    if destroy:
        for one in staying:
            store.change_member(connection, one.id, state=MemberState.LEAVING)
    else:
        store.take_out(connection, gone)
    return operation


def replace(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    group_id: str,
    pairs: Mapping[str, str],
) -> Operation:
    """Exchange members of a group for members that are in no group."""
    group, operation = begin(cloud, connection, ctxt, group_id, GroupAction.REPLACE_MEMBERS)
    gone = members_of(connection, ctxt, list(pairs), group_id)
    new = members_of(connection, ctxt, list(pairs.values()), None)
    if len(gone) != len(new):
        raise Invalid("Each node must be replaced by another one.")
    store.take_out(connection, gone)
    _take_in(connection, group, new)
    return operation


def recover_member(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    member_id: str,
    *,
    check: bool = False,
) -> Operation:
    """Have a member's server replaced; ``check``: unless it is well."""
    member = store.member(connection, member_id, scope(ctxt))
    if member.group_id is None:
        raise Conflict(f"The node '{member.name}' is in no cluster, so nothing replaces it.")
    if check and seen.is_left_alone(member):
        return begin(cloud, connection, ctxt, member.group_id, GroupAction.CHECK)[1]
    _, operation = begin(cloud, connection, ctxt, member.group_id, GroupAction.RECOVER)
    store.change(connection, member.group_id, **_AFRESH)
    if member.state == MemberState.KEPT and member.server_uuid is not None:
        reason = "Its replacement was asked for."
        values = {"state": MemberState.REPLACED, "ready_at": None, "reason": reason}
        store.change_member(connection, member_id, **values)
    return operation


def new_standalone(ctxt: RequestContext, name: str, profile_id: str) -> dict[str, Any]:
    """Return the row of a member that is in no group."""
    return {
        "id": deadlines.new_uuid(),
        "project_id": ctxt.project_id,
        "user_id": ctxt.user_id,
        "name": name,
        "profile_id": profile_id,
    }

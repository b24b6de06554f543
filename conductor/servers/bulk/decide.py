"""What follows for a bulk migration from what is seen of its servers and migrations. Pure."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from common import failures
from common.moving import Situation, Way, obstacle, way
from common.resources.bulk_migrations import ENDED, UNDER_WAY, Move, MoveState, Steering
from common.resources.states import OPEN_STATES, VmState
from conductor.plans import BulkPlan
from conductor.store.ledger.bulk_migrations import Begun

#: how often one server is tried
MAX_TRIES = 3
#: pause after which a server that found no host is tried again, where that is waited for, unless
#: a host has more room before
ROOM_SECONDS = 30.0
NOT_LIVE = "it can't be moved while it runs, and is not to be stopped"


_NONE = Begun("", None)


@dataclass(frozen=True)
class Seen:
    """A server's record as it is now."""

    uuid: str
    name: str
    host: str | None
    task_state: str | None
    situation: Situation

    @property
    def resized(self) -> bool:
        """Return whether its migration is to be confirmed."""
        return self.situation.vm_state == VmState.RESIZED


@dataclass(frozen=True)
class Facts:
    """What a look at the record shows."""

    servers: Mapping[str, Seen]
    """By UUID; deleted ones are missing."""
    operations: Mapping[int, Begun]
    """The migrations that were begun, by id."""
    now: datetime.datetime
    late: bool = False
    """The deadline has passed: no more moves begin."""


def after(plan: BulkPlan, facts: Facts) -> BulkPlan:
    """Return the plan after a look; a drain gets the servers that are new on its host."""
    known = {move.server_uuid for move in plan.moves}
    new = [
        Move(one.uuid, one.name, plan.target.host)
        for one in facts.servers.values()
        if plan.target.host is not None and one.host == plan.target.host and one.uuid not in known
    ]
    moves = tuple(_after(move, plan, facts) for move in (*plan.moves, *new))
    return dataclasses.replace(plan, moves=moves)


def begins(plan: BulkPlan, facts: Facts, others: int, in_all: int) -> Iterator[Move]:
    """Yield the moves that begin now; ``others`` are under way for other bulk migrations."""
    working = under_way(plan)
    room = min(plan.at_once - working, in_all - others - working)
    for move in plan.moves:
        if move.not_before is not None and move.not_before > facts.now:
            continue
        if move.state == MoveState.CONFIRMING and move.operation_id is None:
            # It has its place already, and holds both hosts until it is confirmed.
            yield move
        elif _may_begin(move, plan, facts) and room > 0:
            room -= 1
            yield move


def under_way(plan: BulkPlan) -> int:
    """Return how many moves are under way."""
    return sum(move.state in UNDER_WAY for move in plan.moves)


def is_over(plan: BulkPlan, facts: Facts) -> bool:
    """Return whether nothing is under way, and nothing will be."""
    states = {move.state for move in plan.moves}
    if states & UNDER_WAY:
        return False
    return MoveState.WAITING not in states or plan.steering == Steering.CANCEL or facts.late


def at_the_end(plan: BulkPlan) -> BulkPlan:
    """Return the plan with a reason for every server that still waits."""
    cancelled = plan.steering == Steering.CANCEL
    why = "it was cancelled before" if cancelled else "it did not begin in time"
    return dataclasses.replace(
        plan,
        moves=tuple(
            dataclasses.replace(one, reason=one.reason or why)
            if one.state == MoveState.WAITING
            else one
            for one in plan.moves
        ),
    )


def begun(move: Move, operation_id: int) -> Move:
    """Return a move whose migration, or its confirmation, was begun."""
    confirms = move.state == MoveState.CONFIRMING
    return dataclasses.replace(
        move,
        state=MoveState.CONFIRMING if confirms else MoveState.MOVING,
        operation_id=operation_id,
        tries=move.tries + 1 - confirms,
        not_before=None,
        reason=None,
    )


def refused(move: Move, why: str, now: datetime.datetime) -> Move:
    """Return a move whose migration, or its confirmation, could not be begun, or failed."""
    if move.state == MoveState.MOVING:
        move = dataclasses.replace(move, state=MoveState.WAITING)
    else:
        move = dataclasses.replace(move, tries=move.tries + 1)
    move = dataclasses.replace(move, waits_since=None)
    if move.tries >= MAX_TRIES:
        moved = move.state == MoveState.CONFIRMING
        state = MoveState.MOVED if moved else MoveState.FAILED
        return dataclasses.replace(move, state=state, reason=why)
    pause = datetime.timedelta(seconds=failures.backoff_seconds(move.tries))
    return dataclasses.replace(move, operation_id=None, not_before=now + pause, reason=why)


def _ended(move: Move, its: Begun, plan: BulkPlan, now: datetime.datetime) -> Move:
    """Return a move whose migration ended where it began; where room is waited for, a
    migration that found no host is no try."""
    why = its.message or "its migration ended, and it is where it was"
    waits = plan.waits_until is not None and now < plan.waits_until
    if not (its.found_no_host and waits):
        return refused(dataclasses.replace(move, state=MoveState.MOVING), why, now)
    return dataclasses.replace(
        move,
        state=MoveState.WAITING,
        operation_id=None,
        tries=move.tries - 1,
        not_before=now + datetime.timedelta(seconds=ROOM_SECONDS),
        reason=why,
        waits_since=move.waits_since or now,
    )


def _after(move: Move, plan: BulkPlan, facts: Facts) -> Move:
    if move.state in ENDED:
        return move
    seen = facts.servers.get(move.server_uuid)
    if seen is None:
        return dataclasses.replace(move, state=MoveState.GONE, reason="it was deleted")
    its = facts.operations.get(move.operation_id or 0, _NONE)
    if move.state in UNDER_WAY and its.state in OPEN_STATES:
        return move
    if seen.host != move.source:
        return _elsewhere(move, seen, its.message, facts)
    if move.state in UNDER_WAY:
        return _ended(move, its, plan, facts.now)
    return _here(move, plan, seen)


def _elsewhere(move: Move, seen: Seen, message: str | None, facts: Facts) -> Move:
    """Return the move of a server that is on another host; it may have to be confirmed."""
    move = dataclasses.replace(move, target=seen.host)
    if move.state not in UNDER_WAY or move.way != Way.COLD or not seen.resized:
        return dataclasses.replace(move, state=MoveState.MOVED, reason=None)
    if facts.late:
        why = move.reason or "its migration is not confirmed yet"
        return dataclasses.replace(move, state=MoveState.MOVED, reason=why)
    if move.state == MoveState.CONFIRMING and move.operation_id is not None:
        return refused(move, message or "its migration could not be confirmed", facts.now)
    return dataclasses.replace(move, state=MoveState.CONFIRMING, operation_id=None)


def _here(move: Move, plan: BulkPlan, seen: Seen) -> Move:
    """Return the move of a server that is to be moved yet."""
    how = way(seen.situation)
    why = obstacle(seen.situation)
    if how == Way.COLD and plan.live_only and seen.situation.vm_state != VmState.STOPPED:
        why = NOT_LIVE
    # The reason of a refusal is shown until the move is tried again.
    state, reason = MoveState.WAITING, move.reason if move.not_before else None
    if seen.task_state is not None:
        reason = f"it is busy ({seen.task_state})"
    elif why is not None:
        state, reason = MoveState.BLOCKED, why
    return dataclasses.replace(move, state=state, way=how, reason=reason)


def _may_begin(move: Move, plan: BulkPlan, facts: Facts) -> bool:
    idle = move.state == MoveState.WAITING and move.way is not None
    if not idle or plan.steering != Steering.GO or facts.late:
        return False
    return facts.servers[move.server_uuid].task_state is None

"""Bulk migrations as data: many servers' moves that one operation carries out."""

from __future__ import annotations

import datetime
import enum
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from common.resources.states import InternalAction

#: the actions of the ledger that are bulk migrations
ACTIONS = (InternalAction.DRAIN, InternalAction.REBALANCE)


class MoveState(enum.StrEnum):
    """Progress of the move of one server."""

    WAITING = "waiting"  #: for a free place among those at once, for its next try, or its server
    BLOCKED = "blocked"  #: it can't be moved as it is now
    MOVING = "moving"  #: its migration is under way
    CONFIRMING = "confirming"  #: it is on another host, and its migration is to be confirmed
    MOVED = "moved"
    GONE = "gone"  #: the server was deleted
    FAILED = "failed"  #: it was tried often enough


#: those that are not looked at again
ENDED = frozenset({MoveState.MOVED, MoveState.GONE, MoveState.FAILED})
#: those that count as moves at once
UNDER_WAY = frozenset({MoveState.MOVING, MoveState.CONFIRMING})


class Steering(enum.StrEnum):
    """What an administrator wants of a bulk migration; moves under way end in any case."""

    GO = "go"
    PAUSE = "pause"  #: begin no more moves for now
    CANCEL = "cancel"  #: begin no more moves


@dataclass(frozen=True)
class Move:
    """One server of a bulk migration."""

    server_uuid: str
    name: str
    source: str
    state: MoveState = MoveState.WAITING
    way: str | None = None
    """``common.moving.Way``; None: not decided."""
    target: str | None = None
    """The only allowed target host; None: the scheduler chooses when the move begins. In the end,
    where the server is."""
    operation_id: int | None = None
    """The migration, or its confirmation, that was begun last."""
    tries: int = 0
    not_before: datetime.datetime | None = None
    """When it is tried again."""
    reason: str | None = None
    """Why it waits, can't be moved, or failed."""
    purpose: str | None = None
    """Why it is moved, where that is not plain from the whole."""
    waits_since: datetime.datetime | None = None
    """Since when no host had room for it; None: it does not wait for that."""

    @property
    def waits_for_room(self) -> bool:
        """Return whether it is tried again once a host has more room."""
        return self.state == MoveState.WAITING and self.waits_since is not None


def sentence(moves: Sequence[Move]) -> str:
    """Return how many servers moved, how many remain, and why, in a sentence."""
    moved = sum(one.state == MoveState.MOVED for one in moves)
    left = [one for one in moves if one.state not in (MoveState.MOVED, MoveState.GONE)]
    if not left:
        return f"{moved} moved, none remain."
    reasons = Counter(one.reason or one.state for one in left)
    why = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
    return f"{moved} moved, {len(left)} remain ({why})."

"""Deadlines of RPC calls: a call is not carried out once its caller has given up.

A call carries for how long its caller waits, and when it was sent by the cloud's clock
(``common.clock``). The message bus drops messages that wait in a queue for longer; this module
counts the time after that, until the work is committed. A process that doesn't know the cloud's
clock says no time, or counts from the arrival.

A caller with ``patience`` asks another server, or none, after so long without a sign. Signs
are sent while the work is done (``common.rpc.signs``), and each extends the deadline; so a server
that stood still for longer commits nothing that its caller has asked another one for.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from common import clock, ids
from common.errors import Unavailable

#: time reserved for the answer's way back: a share of the wait, and at most these seconds
_WAY_BACK_SHARE, _WAY_BACK_SECONDS = 0.1, 2.0


@dataclass(frozen=True)
class Wait:
    """How long the caller of a call waits; crosses RPC as a dict of plain values."""

    seconds: float
    """How long it waits for the answer."""
    patience: float | None = None
    """How long it waits for a sign, before it asks another server, or gives up if it asked that
    one alone; None: it waits for the answer alone."""
    sent_at: float | None = None
    """Seconds since 1970, by the cloud's clock; None: the sender doesn't know it."""
    call: str = ""
    """Identifies the call, the same when it is repeated."""
    again: bool = False
    """Whether it is repeated: another server may have carried it out."""

    def to_message(self) -> Mapping[str, Any]:
        """Return the values that a call sent now carries."""
        sent = {"sent_at": clock.seconds()} if clock.is_followed() else {}
        patience = {} if self.patience is None else {"patience": self.patience}
        again = {"again": True} if self.again else {}
        return {"seconds": self.seconds, "call": self.call, **sent, **patience, **again}

    @classmethod
    def from_message(cls, fields: Any) -> Wait | None:
        """Read it from a message; None where there is none: a cast."""
        try:
            patience, sent_at = fields.get("patience"), fields.get("sent_at")
            return cls(
                float(fields["seconds"]),
                None if patience is None else float(patience),
                None if sent_at is None else float(sent_at),
                str(fields.get("call", "")),
                bool(fields.get("again")),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def under_way(self) -> float:
        """Return the seconds since it was sent; 0 where the clocks are not known."""
        if self.sent_at is None or not clock.is_followed():
            return 0.0
        return max(0.0, clock.seconds() - self.sent_at)


class Deadline:
    """Until when a call that arrived may be committed, by the monotonic clock."""

    def __init__(self, wait: Wait, arrived: float) -> None:
        self.wait = wait
        self.committed = False
        """Whether it is carried out: the rest of it follows in any case."""
        self.made = 0
        """How many UUIDs it has made."""
        self.answers_nothing = False
        """Whether its method has no answer."""
        begun = arrived - wait.under_way()
        self._last = begun + _usable(wait.seconds)
        self.until = self._last
        if wait.patience is not None:
            self.until = min(self._last, begun + _usable(wait.patience))

    def over(self) -> bool:
        """Return whether the caller has given up."""
        return not self.committed and time.monotonic() >= self.until

    def extend(self, signed: float) -> None:
        """Count from a sign that was sent then."""
        if self.wait.patience is not None:
            self.until = min(self._last, signed + _usable(self.wait.patience))


def _usable(seconds: float) -> float:
    return seconds - min(seconds * _WAY_BACK_SHARE, _WAY_BACK_SECONDS)


class _Together(Deadline):
    """The deadline of work that is done for several calls: the first of theirs."""

    def __init__(self, parts: Sequence[Deadline]) -> None:
        super().__init__(Wait(0.0), time.monotonic())
        self._parts = parts
        self.until = min(one.until for one in parts)

    def over(self) -> bool:
        return not self.committed and any(one.over() for one in self._parts)


class _Current(threading.local):
    """The deadline of this thread's call; None: there is none."""

    deadline: Deadline | None = None


_current = _Current()


@contextmanager
def answering(deadline: Deadline | None) -> Iterator[None]:
    """Set the deadline of the block's call. Raises Unavailable if it is over."""
    _current.deadline = deadline
    try:
        check()
        yield
    finally:
        _current.deadline = None


def current() -> Deadline | None:
    """Return the deadline of this thread's call; None: there is none."""
    return _current.deadline


@contextmanager
def earliest(deadlines: Iterable[Deadline | None]) -> Iterator[None]:
    """Set the deadline of work that is done for several calls: the first of theirs.

    Afterwards this thread has its own again.
    """
    own = _current.deadline
    parts = [one for one in deadlines if one is not None]
    _current.deadline = _Together(parts) if parts else None
    try:
        yield
    finally:
        _current.deadline = own


def check() -> None:
    """Raise Unavailable once the caller of this thread's call has given up."""
    if _current.deadline is not None and _current.deadline.over():
        raise Unavailable("Who asked has given up waiting: nothing is done.", given_up=True)


def carried_out() -> None:
    """Drop the deadline: the work is committed, and the rest of it follows in any case."""
    if _current.deadline is not None:
        _current.deadline.committed = True


def call() -> str:
    """Return what identifies this thread's call; empty: there is none."""
    return "" if _current.deadline is None else _current.deadline.wait.call


def unanswered() -> Deadline | None:
    """Return the deadline of this thread's call if it may be repeated, and nothing of it is
    committed yet."""
    deadline = _current.deadline
    if deadline is None or deadline.committed or not deadline.wait.call:
        return None
    return None if deadline.wait.patience is None else deadline


def new_uuid() -> str:
    """Return a new UUID. Of a call, the same one each time that it is carried out, so that a call
    which is repeated can't make a second one; see ``made_by``."""
    deadline = _current.deadline
    if deadline is None or not deadline.wait.call:
        return ids.new_uuid()
    deadline.made += 1
    return made_by(deadline.wait.call, deadline.made)


def made() -> int:
    """Return how many UUIDs this thread's call has made."""
    return 0 if _current.deadline is None else _current.deadline.made


def make_again(before: int) -> None:
    """Have the call make the same UUIDs as after so many: what it does is done again."""
    if _current.deadline is not None:
        _current.deadline.made = before


def made_by(call: str, number: int) -> str:
    """Return the UUID that a call makes at that turn, from 1 on; it looks like a random one.

    0: the ID of its answer, which does not give away the call's.
    """
    digest = hashlib.sha256(f"{call} {number}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))

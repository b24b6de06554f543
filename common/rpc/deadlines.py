"""Deadlines of RPC calls: a call is not carried out once its caller has given up.

A call carries the time when it was sent and for how long its caller waits. The message bus drops
messages that wait in a queue for longer; this module counts the time after that, until the work
begins. Clocks of hosts differ: the shortest apparent transit time of a sender's messages is taken
for the difference, once it has lasted longer than any queue holds messages. A few late messages
prove nothing: their receiver may have been stopped.
"""

from __future__ import annotations

import collections
import functools
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from common.errors import Unavailable

#: time reserved for the answer's way back: a share of the wait, and at most these seconds
_WAY_BACK_SHARE, _WAY_BACK_SECONDS = 0.1, 2.0
#: number of samples kept of each sender
_COMPARED = 32
#: length of a sample: the smallest delay of all messages in it counts
_SAMPLE_SECONDS = 10.0
#: number of senders kept; the longest silent sender is dropped first
_SENDERS = 1000
#: time that the samples must span before their smallest delay counts as a difference of clocks
_ENOUGH_SECONDS = 120.0


@dataclass
class _Sample:
    """The least that messages of some seconds were under way, by two clocks."""

    arrived_at: float
    shown: float


@dataclass(frozen=True)
class Wait:
    """How long the caller of a call waits; crosses RPC as a dict of plain values."""

    sender: str
    sent_at: float
    """Seconds since 1970, by the sender's clock."""
    seconds: float
    """How long it waits."""

    @classmethod
    def from_message(cls, fields: Any) -> Wait | None:
        """Read it from a message; None where there is none: a cast, or an older release's."""
        try:
            return cls(str(fields["sender"]), float(fields["sent_at"]), float(fields["seconds"]))
        except (KeyError, TypeError, ValueError):
            return None


@functools.cache
def _sender(process: int) -> str:
    """Return the name of this process among all that send; a forked one has its own."""
    return f"{process}-{secrets.token_hex(4)}"


def sent(seconds: float, now: Callable[[], float] = time.time) -> Mapping[str, Any]:
    """Return the values that a call sent now carries."""
    return {"sender": _sender(os.getpid()), "sent_at": now(), "seconds": seconds}


class Delays:
    """Computes how long messages were under way, although clocks differ."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: collections.OrderedDict[str, collections.deque[_Sample]] = (
            collections.OrderedDict()
        )

    def seconds(self, wait: Wait, arrived_at: float) -> float:
        """Return the seconds since a message was sent; ``arrived_at`` by the receiver's clock."""
        shown = arrived_at - wait.sent_at
        with self._lock:
            samples = self._samples(wait.sender)
            if samples and arrived_at - samples[-1].arrived_at < _SAMPLE_SECONDS:
                samples[-1].shown = min(samples[-1].shown, shown)
            else:
                samples.append(_Sample(arrived_at, shown))
            least = min(sample.shown for sample in samples)
            known_for = samples[-1].arrived_at - samples[0].arrived_at
        difference = least if least < 0 or known_for >= _ENOUGH_SECONDS else 0.0
        return max(shown - difference, 0.0)

    def _samples(self, sender: str) -> collections.deque[_Sample]:
        samples = self._seen.setdefault(sender, collections.deque(maxlen=_COMPARED))
        self._seen.move_to_end(sender)
        while len(self._seen) > _SENDERS:
            self._seen.popitem(last=False)
        return samples


class _Current(threading.local):
    """The deadline of this thread's call, by the monotonic clock; None: there is none."""

    until: float | None = None


_current = _Current()


@contextmanager
def answering(until: float | None) -> Iterator[None]:
    """Set the deadline of the block's call. Raises Unavailable if it is over."""
    _current.until = until
    try:
        check()
        yield
    finally:
        _current.until = None


def current() -> float | None:
    """Return the deadline of this thread's call, by the monotonic clock; None: there is none."""
    return _current.until


@contextmanager
def earliest(deadlines: Iterable[float | None]) -> Iterator[None]:
    """Set the deadline of work that is done for several calls: the first of theirs.

    Afterwards this thread has its own again.
    """
    own = _current.until
    _current.until = min((one for one in deadlines if one is not None), default=None)
    try:
        yield
    finally:
        _current.until = own


def until(wait: Wait, under_way: float, arrived: float) -> float:
    """Return the deadline, by the monotonic clock, of a call that ``arrived`` then."""
    way_back = min(wait.seconds * _WAY_BACK_SHARE, _WAY_BACK_SECONDS)
    return arrived + wait.seconds - way_back - under_way


def check() -> None:
    """Raise Unavailable once the caller of this thread's call has given up."""
    if _current.until is not None and time.monotonic() >= _current.until:
        raise Unavailable("Who asked has given up waiting: nothing is done.", given_up=True)


def carried_out() -> None:
    """Drop the deadline: the work is committed, and the rest of it follows in any case."""
    _current.until = None

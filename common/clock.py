"""Times: always aware, in UTC, with microseconds.

Leases, heartbeats and deadlines compare times of several machines, so all processes of a cloud
follow one clock: its database's (``common.process.timekeeping``). A process that follows it counts
on from the last comparison by the monotonic clock; so a step of its own machine's clock changes
nothing. Without a comparison, as in a cloud of one process, it is the machine's own clock.
"""

from __future__ import annotations

import datetime
import time

from oslo_utils import timeutils

#: a new comparison that agrees with the former one so closely changes nothing: durations of what
#: is under way would shift by what the comparison's own round trip took
AGREES_SECONDS = 0.1


class _Followed:
    """The cloud's clock, as this process last read it."""

    #: seconds since 1970 when the monotonic clock was 0; None: it was never read
    origin: float | None = None


_followed = _Followed()


def follow(seconds: float, at: float) -> None:
    """Count on from a time of the cloud's clock: seconds since 1970, at that monotonic time."""
    origin = seconds - at
    if _followed.origin is None or abs(origin - _followed.origin) > AGREES_SECONDS:
        _followed.origin = origin


def unfollow() -> None:
    """Take this machine's clock again."""
    _followed.origin = None


def is_followed() -> bool:
    """Return whether this process counts by the cloud's clock."""
    return _followed.origin is not None


def seconds() -> float:
    """Return the current time in seconds since 1970."""
    origin = _followed.origin
    return time.time() if origin is None else origin + time.monotonic()


def utcnow() -> datetime.datetime:
    """Return the current time, aware, in UTC."""
    if _followed.origin is None:
        return datetime.datetime.now(datetime.UTC)
    return datetime.datetime.fromtimestamp(seconds(), datetime.UTC)


def after(seconds: float) -> datetime.datetime:
    """Return the time so many seconds from now."""
    return utcnow() + datetime.timedelta(seconds=seconds)


def iso(moment: datetime.datetime | None) -> str | None:
    """Format a time as Nova does: seconds, ``Z`` (``2026-01-31T12:00:00Z``); None for None."""
    return None if moment is None else f"{_zoneless(moment).isoformat('T', 'seconds')}Z"


def iso_microseconds(moment: datetime.datetime | None) -> str | None:
    """Format a time as in Nova's instance actions: microseconds, no zone; None for None."""
    return None if moment is None else _zoneless(moment).isoformat("T", "microseconds")


def _zoneless(moment: datetime.datetime) -> datetime.datetime:
    # Lists have thousands of them: a third of what formatting with the zone takes.
    return datetime.datetime.combine(moment, moment.time())


def parse(text: str) -> datetime.datetime:
    """Parse ISO 8601 text as an aware time in UTC. Raises ValueError, also for a time outside of
    the years that UTC has."""
    moment = timeutils.parse_isotime(text)
    try:
        return moment.astimezone(datetime.UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is outside of the calendar") from error


def end_of(moment: datetime.datetime) -> datetime.datetime:
    """Return the last instant that a shown time stands for.

    Times are kept with microseconds, and mostly shown without: a whole second stands for all of
    it.
    """
    return moment if moment.microsecond else moment.replace(microsecond=999_999)

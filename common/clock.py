"""Times: always aware, in UTC, with microseconds."""

from __future__ import annotations

import datetime

from oslo_utils import timeutils


def utcnow() -> datetime.datetime:
    """Return the current time, aware, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def after(seconds: float) -> datetime.datetime:
    """Return the time so many seconds from now."""
    return utcnow() + datetime.timedelta(seconds=seconds)


def iso(moment: datetime.datetime | None) -> str | None:
    """Format a time as Nova does: seconds, ``Z`` (``2026-01-31T12:00:00Z``); None for None."""
    # A quarter of what strftime takes: lists have thousands of them.
    return None if moment is None else f"{moment.isoformat('T', 'seconds')[:19]}Z"


def iso_microseconds(moment: datetime.datetime | None) -> str | None:
    """Format a time as in Nova's instance actions: microseconds, no zone; None for None."""
    if moment is None:
        return None
    # Lists have thousands of them: a third of what formatting with the zone takes.
    return datetime.datetime.combine(moment, moment.time()).isoformat("T", "microseconds")


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

"""Time: aware UTC everywhere, milliseconds cut off nowhere."""

from __future__ import annotations

import datetime

from oslo_utils import timeutils


def utcnow() -> datetime.datetime:
    """The current time, aware, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def after(seconds: float) -> datetime.datetime:
    """The time that many seconds from now."""
    return utcnow() + datetime.timedelta(seconds=seconds)


def iso(moment: datetime.datetime | None) -> str | None:
    """Nova's form of a time: seconds, ``Z`` (``2026-01-31T12:00:00Z``); None stays None."""
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_microseconds(moment: datetime.datetime | None) -> str | None:
    """Nova's other form, of instance actions: microseconds and no zone; None stays None."""
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%f")


def parse(text: str) -> datetime.datetime:
    """The aware time, in UTC, that ISO 8601 text says. Raises ValueError, also for one that UTC
    has no year for."""
    moment = timeutils.parse_isotime(text)
    try:
        return moment.astimezone(datetime.UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is outside of the calendar") from error


def end_of(moment: datetime.datetime) -> datetime.datetime:
    """The last instant that a shown time stands for.

    Times are kept with microseconds, and mostly shown without: a whole second stands for all of
    it.
    """
    return moment if moment.microsecond else moment.replace(microsecond=999_999)

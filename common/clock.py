"""Time: aware UTC everywhere, milliseconds cut off nowhere."""

from __future__ import annotations

import datetime


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

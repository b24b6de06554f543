"""Audit periods, held against what Nova makes of the same settings."""

from __future__ import annotations

import datetime

import pytest

from common.resources.audit_periods import AuditPeriods


def a_time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("period", "at", "begin", "end"),
    [
        ("hour", "2026-03-01 00:20", "2026-02-28 23:00", "2026-03-01 00:00"),
        ("hour@30", "2026-03-01 00:20", "2026-02-28 22:30", "2026-02-28 23:30"),
        ("hour@30", "2026-03-01 00:40", "2026-02-28 23:30", "2026-03-01 00:30"),
        ("day", "2026-03-01 00:20", "2026-02-28", "2026-03-01"),
        ("day@18", "2026-03-01 12:00", "2026-02-27 18:00", "2026-02-28 18:00"),
        ("month", "2026-03-31 12:00", "2026-02-01", "2026-03-01"),
        ("month@0", "2026-01-31 12:00", "2025-12-01", "2026-01-01"),
        ("month@15", "2026-01-14 12:00", "2025-11-15", "2025-12-15"),
        ("month@15", "2026-01-16 12:00", "2025-12-15", "2026-01-15"),
        ("month@28", "2026-03-01 12:00", "2026-01-28", "2026-02-28"),
        ("year", "2026-03-01 12:00", "2025-01-01", "2026-01-01"),
        ("year@3", "2026-02-28 12:00", "2024-03-01", "2025-03-01"),
        ("year@3", "2028-02-29 12:00", "2026-03-01", "2027-03-01"),
        # It is over once its end has passed, not at it.
        ("day", "2026-03-01 00:00", "2026-02-27", "2026-02-28"),
    ],
)
def test_the_last_one(period: str, at: str, begin: str, end: str) -> None:
    periods = AuditPeriods.parse(period)
    assert periods.last(a_time(at)) == (a_time(begin), a_time(end))
    assert periods.current(a_time(at)) == (a_time(end), a_time(at))


@pytest.mark.parametrize(
    "text",
    ["", "week", "hour@60", "day@24", "month@29", "year@13", "month@", "month@1x", "months", "@1"],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no audit period"):
        AuditPeriods.parse(text)

"""Audit periods: hours, days, months or years, at whose end usage is notified. Pure."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TypeAlias

#: what a period is written as, as in Nova, and no begin that some month hasn't
PATTERN = (
    r"^(hour(@[0-5]?[0-9])?|day(@([01]?[0-9]|2[0-3]))?"
    r"|month(@([01]?[0-9]|2[0-8]))?|year(@(0?[0-9]|1[0-2]))?)$"
)
DEFAULT = "month"

#: (begin, end)
Window: TypeAlias = tuple[datetime.datetime, datetime.datetime]


@dataclass(frozen=True)
class AuditPeriods:
    """The division of time into periods of one kind, in UTC."""

    unit: str
    """``hour``, ``day``, ``month`` or ``year``."""
    offset: int = 0
    """The minute, hour, day or month that each begins with; 0 is the first one."""

    @classmethod
    def parse(cls, text: str) -> AuditPeriods:
        """Return those of ``UNIT`` or ``UNIT@OFFSET``. Raises ValueError."""
        if not re.match(PATTERN, text):
            raise ValueError(f"{text!r} is no audit period")
        unit, _, offset = text.partition("@")
        return cls(unit, int(offset or 0))

    def last(self, at: datetime.datetime) -> Window:
        """Return the last period that ended before this time. Raises ValueError before year 3."""
        end = self._begun(at)
        return self._previous(end), end

    def current(self, at: datetime.datetime) -> Window:
        """Return the elapsed part of the period that this time is in."""
        return self._begun(at), at

    def _begun(self, at: datetime.datetime) -> datetime.datetime:
        """Return the last begin of a period before this time."""
        begin = self._in(at)
        return begin if begin < at else self._previous(begin)

    def _in(self, at: datetime.datetime) -> datetime.datetime:
        """Return the begin in the hour, day, month or year that this time is in."""
        hour = at.replace(minute=0, second=0, microsecond=0)
        if self.unit == "hour":
            return hour.replace(minute=self.offset)
        day = hour.replace(hour=0)
        if self.unit == "day":
            return day.replace(hour=self.offset)
        if self.unit == "month":
            return day.replace(day=self.offset or 1)
        return day.replace(month=self.offset or 1, day=1)

    def _previous(self, begin: datetime.datetime) -> datetime.datetime:
        if self.unit == "hour":
            return begin - datetime.timedelta(hours=1)
        if self.unit == "day":
            return begin - datetime.timedelta(days=1)
        if self.unit == "month":
            before = begin.replace(day=1) - datetime.timedelta(days=1)
            return before.replace(day=begin.day)
        return begin.replace(year=begin.year - 1)

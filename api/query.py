"""The query string; a parameter may be repeated."""

from __future__ import annotations

import datetime

from oslo_utils import strutils

from common import clock
from common.errors import Invalid
from web import queries


class Query(dict[str, list[str]]):
    """Parameter → its values, in order."""

    @classmethod
    def parse(cls, text: str) -> Query:
        """Return the parameters of a query string; blank values count. Raises Invalid."""
        query = cls()
        for name, value in queries.pairs(text):
            if "\0" in name or "\0" in value:
                raise Invalid("A query parameter holds a null character.")
            query.setdefault(name, []).append(value)
        return query

    def last(self, name: str) -> str | None:
        """Return the last value, which counts where only one is expected; None: not given."""
        values = self.get(name)
        return values[-1] if values else None

    def boolean(self, name: str, default: bool = False) -> bool:
        """Return a boolean in any of OpenStack's spellings. Raises Invalid for others."""
        value = self.last(name)
        if value is None:
            return default
        try:
            return bool(strutils.bool_from_string(value, strict=True))
        except ValueError as error:
            raise Invalid(str(error)) from error

    def moment(self, name: str) -> datetime.datetime | None:
        """Return a timezone-aware time. Raises Invalid."""
        value = self.last(name)
        if value is None:
            return None
        try:
            return clock.parse(value)
        except ValueError as error:
            raise Invalid(f"Invalid filter field: {name}.") from error

    def number(self, name: str) -> int | None:
        """Return a non-negative integer. Raises Invalid."""
        value = self.last(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit()):
            raise Invalid(f"Invalid input received: {name} must be an integer")
        # No list is longer; and Python doesn't convert numbers of thousands of digits.
        return int(value[-18:]) if len(value.lstrip("0")) <= 18 else 10**18

    def page(self, most: int) -> tuple[int, str | None]:
        """(limit, marker) of a list with pages of at most `most` items."""
        limit = self.number("limit")
        return (most if limit is None else min(most, limit)), self.last("marker")

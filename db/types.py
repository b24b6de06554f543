"""Column types that behave alike on PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from common import clock

_UTC = datetime.UTC


class UtcDateTime(sa.types.TypeDecorator[datetime.datetime]):
    """An aware UTC time, with microseconds, on every database."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.engine.Dialect) -> sa.types.TypeEngine[Any]:
        """Have MariaDB keep fractions of a second, which it drops by default."""
        if dialect.name not in {"mysql", "mariadb"}:
            return super().load_dialect_impl(dialect)
        # Here, as it loads six drivers: a megabyte that only MariaDB needs.
        from sqlalchemy.dialects import mysql

        return dialect.type_descriptor(mysql.DATETIME(fsp=6))

    def process_bind_param(
        self, value: datetime.datetime | None, dialect: sa.engine.Dialect
    ) -> datetime.datetime | None:
        """Refuse naive times: they would be read back as another time."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive time can't be stored")
        moment = value.astimezone(datetime.UTC)
        return moment if dialect.name == "postgresql" else moment.replace(tzinfo=None)

    def result_processor(
        self, dialect: sa.engine.Dialect, coltype: object
    ) -> Callable[[Any], datetime.datetime | None]:
        """Return what marks a time as UTC where the database doesn't.

        One function for all of it, as lists have thousands of times.
        """
        read = self.impl_instance.result_processor(dialect, coltype)

        def process(value: Any) -> datetime.datetime | None:
            moment: datetime.datetime | None = value if read is None else read(value)
            if moment is None:
                return None
            zone = moment.tzinfo
            if zone is _UTC:
                return moment
            if zone is not None:
                return moment.astimezone(_UTC)
            # A tenth of what ``replace`` takes.
            return datetime.datetime.combine(moment, moment.time(), _UTC)

        return process


class ShownTime(sa.types.TypeDecorator[str]):
    """A `UtcDateTime` that is read as `clock.iso_microseconds` shows it.

    For the longest lists: on SQLite it is read and formatted in a tenth of the time.
    """

    impl = UtcDateTime
    cache_ok = True

    def result_processor(
        self, dialect: sa.engine.Dialect, coltype: object
    ) -> Callable[[Any], str | None]:
        """Return what makes the text of a time, out of what the database gives."""
        if dialect.name == "sqlite":
            return _with_t
        read = self.impl_instance.result_processor(dialect, coltype)
        return lambda value: clock.iso_microseconds(value if read is None else read(value))


def _with_t(text: str | None) -> str | None:
    """Return SQLAlchemy's text of a time in SQLite, which has a space for the T."""
    return None if text is None else text.replace(" ", "T")


#: JSON; binary on PostgreSQL
Json: sa.types.TypeEngine[Any] = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


class SharedJson(sa.types.TypeDecorator[Any]):
    """JSON cast to text; each text is loaded once, as many rows have the same.

    What is read belongs to all of them, and isn't changed.
    """

    impl = sa.Text
    cache_ok = True

    def result_processor(
        self, dialect: sa.engine.Dialect, coltype: object
    ) -> Callable[[Any], Any]:
        """Return what loads a text, or finds what it was loaded to."""
        return _loaded


@functools.lru_cache(256)
def _loaded(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


#: JSON whose objects keep their order: JSONB sorts keys
OrderedJson: sa.types.TypeEngine[Any] = sa.JSON()

#: 64-bit keys; SQLite counts up only what it calls INTEGER
BigId: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

#: the name of a storage, in keys: MariaDB's have at most 768 characters
StorageName = sa.String(255).with_variant(sa.String(200), "mysql", "mariadb")

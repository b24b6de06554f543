"""Column types that behave alike on PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql


class UtcDateTime(sa.types.TypeDecorator[datetime.datetime]):
    """An aware UTC time, with microseconds, on every database."""

    # MariaDB drops fractions of a second by default.
    impl = sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
    cache_ok = True

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

    def process_result_value(
        self, value: datetime.datetime | None, dialect: sa.engine.Dialect
    ) -> datetime.datetime | None:
        """Mark the time as UTC where the database doesn't."""
        if value is None:
            return None
        if value.tzinfo is None:
            return value.replace(tzinfo=datetime.UTC)
        return value.astimezone(datetime.UTC)


#: JSON; binary on PostgreSQL
Json: sa.types.TypeEngine[Any] = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")

#: JSON whose objects keep their order: JSONB sorts keys
OrderedJson: sa.types.TypeEngine[Any] = sa.JSON()

#: 64-bit keys; SQLite counts up only what it calls INTEGER
BigId: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

#: the name of a storage, in keys: MariaDB's are 768 characters at the most
StorageName = sa.String(255).with_variant(sa.String(200), "mysql", "mariadb")

"""The lists of traits and of resource classes: standard ones, and custom ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection, Engine

from common.errors import Conflict, Invalid
from placement.db import schema, sequence
from placement.errors import UnknownName

CUSTOM = "CUSTOM_"


class Name(NamedTuple):
    """A trait or resource class, and when it was made (seconds since the epoch)."""

    name: str
    created_at: int


class Names:
    """One of the two lists; `used_in` is the column that names may be used in."""

    def __init__(self, table: sa.Table, used_in: sa.Column[str], missing: str) -> None:
        self._table = table
        self._used_in = used_in
        self._missing = missing
        self._columns = (table.c.name, table.c.created_at)
        # Standard names are never deleted, so a name that was seen once is not looked up again.
        self._standard: WeakKeyDictionary[Engine, dict[str, int]] = WeakKeyDictionary()

    def find(self, connection: Connection, name: str) -> Name:
        """Return one by its name. Raises UnknownName."""
        row = connection.execute(
            sa.select(*self._columns).where(self._table.c.name == name)
        ).one_or_none()
        if row is None:
            raise UnknownName(self._missing.format(name))
        return Name(*row)

    def among(self, connection: Connection, names: Iterable[str]) -> dict[str, int]:
        """Return those of `names` that exist, and when each was made; often no statement."""
        known = self._standard.setdefault(connection.engine, {})
        wanted = set(names)
        found = {name: known[name] for name in wanted & known.keys()}
        missing = sorted(wanted - known.keys())
        if missing:
            query = sa.select(*self._columns).where(self._table.c.name.in_(missing))
            for row in connection.execute(query):
                found[row.name] = row.created_at
                if not row.name.startswith(CUSTOM):
                    known[row.name] = row.created_at
        return found

    def listed(
        self,
        connection: Connection,
        *,
        among: Sequence[str] | None = None,
        prefix: str | None = None,
        associated: bool | None = None,
    ) -> list[Name]:
        """Return those in `among`, with that prefix, in use or not (None: all), oldest first."""
        c = self._table.c
        query = sa.select(*self._columns).order_by(c.id)
        if among is not None:
            query = query.where(c.name.in_(among))
        if prefix is not None:
            query = query.where(c.name.startswith(prefix, autoescape=True))
        if associated is not None:
            used = c.name.in_(sa.select(self._used_in))
            query = query.where(used if associated else ~used)
        return [Name(*row) for row in connection.execute(query)]

    def ensure(self, connection: Connection, name: str) -> bool:
        """Add `name` unless it is there; return whether it was added."""
        if connection.execute(
            sa.select(self._table.c.name).where(self._table.c.name == name)
        ).first():
            return False
        try:
            with connection.begin_nested():
                connection.execute(
                    sa.insert(self._table).values(name=name, created_at=sequence.seconds())
                )
        except exc.IntegrityError:
            return False
        sequence.names_changed(connection)
        return True

    def remove(self, connection: Connection, name: str, *, standard: str, used: str) -> None:
        """Delete a custom name.

        Raises UnknownName; Invalid with text `standard` for a standard one; Conflict with text
        `used` while it is in use.
        """
        self.find(connection, name)
        if not name.startswith(CUSTOM):
            raise Invalid(standard)
        try:
            with connection.begin_nested():
                connection.execute(sa.delete(self._table).where(self._table.c.name == name))
        except exc.IntegrityError as error:
            raise Conflict(used) from error
        sequence.names_changed(connection)


def rename_class(connection: Connection, name: str, new: str) -> None:
    """Give a custom resource class another name, wherever it is used.

    Raises UnknownName, Invalid for a standard one, Conflict when the new name is taken.
    """
    resource_classes.find(connection, name)
    if not name.startswith(CUSTOM):
        raise Invalid(f"Cannot update standard resource class {name}")
    if not resource_classes.ensure(connection, new):
        raise Conflict(f"Resource class already exists: {new}")
    inventories, allocations = schema.inventories.c, schema.allocations.c
    for column in (inventories.resource_class, allocations.resource_class):
        connection.execute(sa.update(column.table).where(column == name).values({column: new}))
    connection.execute(
        sa.delete(schema.resource_classes).where(schema.resource_classes.c.name == name)
    )
    sequence.advance(connection)
    users = sa.select(inventories.provider_id).where(inventories.resource_class == new)
    connection.execute(
        sa.update(schema.providers)
        .where(schema.providers.c.id.in_(users))
        .values(changed=sequence.NOW)
    )


traits = Names(schema.traits, schema.provider_traits.c.trait, "No such trait(s): {}.")
resource_classes = Names(
    schema.resource_classes, schema.inventories.c.resource_class, "No such resource class {}."
)

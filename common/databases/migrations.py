"""A schema's two chains of revisions, run by alembic on a connection that is given.

``versions/`` of a folder has those that expand the schema (the first one makes it), and
``contractions/`` those that contract it. Each chain notes in a table of its own how far it is.

How far a database is is read without alembic, which no service has in its memory.
"""

from __future__ import annotations

import contextlib
import enum
import re
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from common.databases import revisions
from common.databases.revisions import Chains, State
from common.errors import ConfigurationError


class Phase(enum.Enum):
    """A chain: its folder, and the table that notes how far a database is in it."""

    EXPAND = ("versions", "alembic_version")
    CONTRACT = ("contractions", "alembic_contracted")


ALL = tuple(Phase)
"""Both phases: of an upgrade while nothing runs, and of a new database."""

#: alembic stores its current context in a module, so one thread at a time may use it
_turn = threading.Lock()


#: statement → the same, where an interrupted run may have carried it out already
_REPEATED = (
    (re.compile(r"(?i)^(\s*CREATE TABLE)\b"), r"\1 IF NOT EXISTS"),
    (re.compile(r"(?i)^(\s*CREATE (?:UNIQUE )?INDEX)\b"), r"\1 IF NOT EXISTS"),
    (re.compile(r"(?i)^(\s*ALTER TABLE \S+ ADD COLUMN)\b"), r"\1 IF NOT EXISTS"),
    (re.compile(r"(?i)^(\s*DROP (?:TABLE|INDEX))\b"), r"\1 IF EXISTS"),
    (re.compile(r"(?i)^(\s*ALTER TABLE \S+ DROP COLUMN)\b"), r"\1 IF EXISTS"),
)


@contextlib.contextmanager
def _repeatable(connection: sa.Connection) -> Iterator[None]:
    """Have statements that change tables do nothing where that is done.

    MariaDB commits each by itself, and what notes a revision only with the next one: a run that is
    interrupted leaves the tables ahead of that. Elsewhere all is one transaction.
    """

    def repeated(_c: Any, _r: Any, statement: str, values: Any, *_: Any) -> tuple[str, Any]:
        for pattern, instead in _REPEATED:
            statement = pattern.sub(instead, statement)
        return statement, values

    if not getattr(connection.dialect, "is_mariadb", False):
        yield
        return
    sa.event.listen(connection, "before_cursor_execute", repeated, retval=True)
    try:
        yield
    finally:
        sa.event.remove(connection, "before_cursor_execute", repeated)


def is_made(url: str) -> bool:
    """Return whether there may be a database; to connect would make a file of SQLite."""
    address = sa.make_url(url)
    file = address.database if address.get_backend_name() == "sqlite" else None
    return not file or Path(file).exists()


class Migrations:
    """The revisions of one database."""

    def __init__(self, folder: Path, name: str, metadata: sa.MetaData) -> None:
        """``name`` is the database's, in sentences."""
        self._folder, self._name, self._metadata = folder, name, metadata

    def known(self) -> Chains:
        """Return the revisions of this release."""
        return Chains(*map(self._chain, Phase))

    def state(self, connection: sa.Connection) -> State:
        """Return how far a database is."""
        there = set(sa.inspect(connection).get_table_names())
        return State(*(self._current(connection, phase, there) for phase in Phase))

    def run(self, connection: sa.Connection, phases: Collection[Phase]) -> None:
        """Do what is left of the phases; the caller's transaction holds a lock of upgrades.

        Raises ConfigurationError for a database that can't be upgraded, or contracted yet.
        """
        known, found = self.known(), self.state(connection)
        if found.expanded is None:
            phases = ALL  # nobody uses it yet
        refused = revisions.refusal(found, known)
        if refused is None and Phase.EXPAND not in phases:
            refused = revisions.problem(found, known)
        if refused is not None:
            raise ConfigurationError(f"The {self._name} database {refused}.")
        # that of a newer release is expanded already
        if Phase.EXPAND in phases and revisions.to_expand(found, known):
            self._run(connection, Phase.EXPAND)
        if Phase.CONTRACT in phases and revisions.to_contract(found, known):
            self._run(connection, Phase.CONTRACT)

    def _run(self, connection: sa.Connection, phase: Phase) -> None:
        from alembic.config import Config
        from alembic.runtime.environment import EnvironmentContext
        from alembic.script import ScriptDirectory

        folder = str(self._folder / phase.value[0])
        scripts = ScriptDirectory(str(self._folder), version_locations=[folder])

        def upgrade(revision: Any, _context: Any) -> Any:
            return scripts._upgrade_revs("head", revision)

        with (
            _turn,
            _repeatable(connection),
            EnvironmentContext(Config(), scripts, fn=upgrade) as environment,
        ):
            environment.configure(
                connection=connection,
                target_metadata=self._metadata,
                version_table=phase.value[1],
                # The caller's transaction holds the lock by which upgrades take turns.
                transactional_ddl=False,
            )
            environment.run_migrations()

    def _chain(self, phase: Phase) -> tuple[str, ...]:
        """Return the revisions of a chain: its files, which are numbered."""
        files = (self._folder / phase.value[0]).glob("[rc][0-9]*.py")
        return tuple(sorted(path.stem for path in files))

    @staticmethod
    def _current(connection: sa.Connection, phase: Phase, there: Collection[str]) -> str | None:
        table = phase.value[1]
        if table not in there:
            return None
        query: sa.Select[Any] = sa.select(sa.column("version_num")).select_from(sa.table(table))
        found: str | None = connection.scalar(query)
        return found

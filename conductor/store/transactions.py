"""Transactions: one per use case, short, and repeated when the database asks for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa
import tenacity

from common.databases import fullness, mistakes, primary
from common.errors import Invalid, Unavailable
from common.log import logger
from common.metrics import table
from common.rpc import UNKNOWN, deadlines
from conductor.store import call_answers, change_events, cloud_identity
from conductor.store.change_events import Recorder

LOG = logger(__name__)

#: an open transaction, or a read-only connection; opaque outside of this package
Transaction: TypeAlias = sa.Connection

T = TypeVar("T")

#: SQLSTATEs of "nothing was done, try again": serialization failure, deadlock, ended while idle
_AGAIN = {"40001", "40P01", "25P03"}
_MYSQL_AGAIN = {1205, 1213}


#: what is done after the commit, in the information of a connection
_AFTER = "micronova.after_commit"


def after_commit(connection: Transaction, work: Callable[[], None]) -> None:
    """Run `work` once the transaction is committed; never if it is rolled back."""
    connection.info.setdefault(_AFTER, []).append(work)


#: whether operations are due that nobody works on
_DUE = "micronova.due"
#: what is done before the commit: key → work
_BEFORE = "micronova.before_commit"


def before_commit(connection: Transaction, key: str, work: Callable[[], None]) -> None:
    """Run `work` as the last part of the transaction; once for all calls with this key."""
    connection.info.setdefault(_BEFORE, {})[key] = work


def note_due(connection: Transaction) -> None:
    """Note that operations are due: the conductor looks for them once this is committed."""
    connection.info[_DUE] = True


def _asks_again(error: BaseException) -> bool:
    if isinstance(error, sa.exc.IntegrityError):
        # Another conductor wrote the row between our read and our write: repeat.
        return True
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    if _was_rolled_back(error):
        return True
    original: Any = error.orig
    arguments: tuple[Any, ...] = getattr(original, "args", ())
    return bool(arguments) and arguments[0] in _MYSQL_AGAIN


def _was_rolled_back(error: sa.exc.DBAPIError) -> bool:
    """Return whether PostgreSQL says that nothing was done, also in answer to a commit."""
    return getattr(error.orig, "sqlstate", None) in _AGAIN


def _write(recorder: Recorder, connection: sa.Connection) -> None:
    """Run a recorder. Raises _Unrecorded if it fails and a retry wouldn't help."""
    found = change_events.noted(connection)
    if not found:
        return
    try:
        recorder.write(connection, found)
    except Exception as error:
        # The record is lost and counted: no operation fails because of that.
        if _asks_again(error) and not isinstance(error, sa.exc.IntegrityError):
            raise
        recorder.lost(error)
        raise _Unrecorded from error


def _unavailable(error: sa.exc.DBAPIError) -> Unavailable:
    if fullness.is_full(error):
        LOG.error(fullness.SENTENCE)
        return Unavailable(fullness.SENTENCE)
    LOG.error("The database doesn't answer: %s", error.orig)
    return Unavailable("The database is not available.")


class _Unrecorded(Exception):
    """What is to be sent could not be written; nothing is committed."""


class Store:
    """Runs use cases against the cloud database.

    Each transaction ends by running the recorders, if there are any.
    """

    def __init__(self, writer: sa.Engine, reader: sa.Engine) -> None:
        self.recorders: tuple[Recorder, ...] = ()
        self.wake: Callable[[], None] | None = None
        """Looks for operations that are due."""
        self._writer = writer
        self._reader = reader
        self.follow: Callable[[Transaction, str], object] = lambda connection, timeline: None
        """What is done first on a timeline of PostgreSQL that is new here, in its transaction."""
        self._timeline: str | None = None
        self._refused = False
        """Whether the last failure was a write that the database didn't take."""
        # SQLite admits one writer and the others poll: so they queue here.
        single = writer.dialect.name == "sqlite"
        self._gate: contextlib.AbstractContextManager[Any] = (
            threading.Lock() if single else contextlib.nullcontext()
        )
        # What it counts is each thread's own.
        self.shares_clock = single
        """Whether the database has this machine's clock."""
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_asks_again),
            stop=tenacity.stop_after_attempt(5),
            wait=tenacity.wait_random_exponential(multiplier=0.02, max=0.5),
            before_sleep=lambda _: table.SQL_REPEATED.count(),
            reraise=True,
        )

    def run(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` in one transaction.

        It is repeated, up to five times, after a deadlock, a lost connection or a row that another
        one wrote first, so it must only use the connection. Raises Unavailable when the connection
        is lost during the commit (the changes may be there, and are not repeated: the detail
        ``outcome`` is UNKNOWN); when the database is away or its disk full; and, with nothing
        written, when it answers a call whose caller has given up. Once a transaction of a call is
        committed, later ones of the call go on. Raises Invalid for a value that no column takes.
        A wrong statement's error passes.
        """
        before = deadlines.made()
        try:
            done: T = self._recorded(work, before)
        except sa.exc.IntegrityError as error:
            if deadlines.made() == before:
                raise
            LOG.warning("A call is carried out already: %s", error.orig)
            raise Unavailable("This call has come before.", outcome=UNKNOWN) from error
        except (sa.exc.DataError, OverflowError) as error:
            # A number or a text that a schema allows and a column doesn't.
            raise Invalid("The request has a value that can't be stored.") from error
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError) as error:
            if mistakes.is_mistake(error):
                raise
            self._refused = True
            raise _unavailable(error) from error
        return done

    def _recorded(self, work: Callable[[sa.Connection], T], made: int) -> T:
        """Run a transaction with the recorders; without them, if one of them can't write."""
        try:
            done = self._repeated(lambda: self._once(work, self.recorders, made))
        except _Unrecorded:
            done = self._repeated(lambda: self._once(work, (), made))
        return done

    def _repeated(self, once: Callable[[], T]) -> T:
        """Run a transaction, again where that helps.

        Tenacity costs as much as a statement, so it is entered only after a failure.
        """
        first: list[sa.exc.DBAPIError] = []
        try:
            return once()
        except sa.exc.DBAPIError as error:
            if not _asks_again(error):
                raise
            first.append(error)

        def again() -> T:
            # The attempt above was the first one.
            if first:
                raise first.pop()
            return once()

        done: T = self._retrying(again)
        return done

    def _once(
        self, work: Callable[[sa.Connection], T], recorders: tuple[Recorder, ...], made: int
    ) -> T:
        # A repetition with other UUIDs would be a second one of what a message made that has
        # come twice.
        deadlines.make_again(made)
        with self._gate, self._writer.connect() as connection:
            # Returning the connection rolls back, unless it is committed.
            transaction = connection.begin()
            for old in (_AFTER, _BEFORE, _DUE):  # of a transaction that was rolled back
                connection.info.pop(old, None)
            change_events.watch(connection, bool(recorders))
            call_answers.forget(connection)
            timeline = connection.info.get(primary.TIMELINE)
            if timeline is not None and timeline != self._timeline:
                self.follow(connection, timeline)
                after_commit(connection, lambda: self._follows(timeline))
            done = work(connection)
            for _, last in sorted(connection.info.pop(_BEFORE, {}).items()):
                last()
            for recorder in recorders:
                _write(recorder, connection)
            call_answers.write(connection)
            # As late as possible: after a long wait, undo it if its caller has given up.
            deadlines.check()
            try:
                transaction.commit()
            except sa.exc.DBAPIError as error:
                if error.connection_invalidated and not _was_rolled_back(error):
                    raise Unavailable(
                        "The database was lost at the end.", outcome=UNKNOWN
                    ) from error
                raise
            deadlines.carried_out()
            afterwards = connection.info.pop(_AFTER, ())
            due = connection.info.pop(_DUE, False)
        for each in afterwards:
            each()
        if due and self.wake is not None:
            self.wake()
        return done

    def _follows(self, timeline: str) -> None:
        self._timeline = timeline

    def answers(self) -> bool:
        """Return whether the database can be read, and written if it refused that before.

        Raises Unavailable while it refuses.
        """
        with self.read() as connection:
            found = bool(connection.execute(sa.text("SELECT 1")).scalar())
        if self._refused:
            self.run(cloud_identity.touch)
            self._refused = False
        return found

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Yield a read-only connection."""
        with self._reader.connect() as connection:
            yield connection

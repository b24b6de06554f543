"""Reading on a streaming replica, where that has all that was committed before.

A client may write by one API and read by another one. So the replica must have not what this
process has written, but all that the primary has when a request begins to read: the primary is
asked for its position in the log, and the replica waited for, for a moment. A replica that is
further behind, is away or was promoted isn't read for a while.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Iterator, Mapping

import sqlalchemy as sa

from common.databases.primary import TIMELINE
from common.log import logger

LOG = logger(__name__)

#: how long a read waits for the replica, and after how long it looks again
WAIT_SECONDS, _PAUSE_SECONDS = 0.1, 0.005
#: for how long nothing is read on a replica that was behind
BEHIND_SECONDS = 2.0

_POSITION = "SELECT pg_current_wal_flush_lsn()::text"
#: A replica of a former primary may be further, in another log: there conductors have not written
#: that they follow this one.
_HAS = sa.text(
    "SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= CAST(:position AS pg_lsn) "
    "AND EXISTS (SELECT 1 FROM cloud_identity WHERE timeline = :timeline)"
)


class Replica:
    """What is known of one replica."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._not_before = float("-inf")

    @contextlib.contextmanager
    def connection(self, primary: sa.Engine) -> Iterator[sa.Connection]:
        """Yield a connection to the replica, or to the primary if that is newer."""
        with contextlib.ExitStack() as stack:
            found = None
            if time.monotonic() >= self._not_before:
                found = self._current(primary, stack)
            yield found or stack.enter_context(primary.connect())

    def _current(self, primary: sa.Engine, stack: contextlib.ExitStack) -> sa.Connection | None:
        """Return a connection to the replica if it has all that the primary has now."""
        with primary.connect() as connection:
            wanted = {
                "timeline": connection.info.get(TIMELINE),
                "position": connection.exec_driver_sql(_POSITION).scalar_one(),
            }
        try:
            with contextlib.ExitStack() as opened:
                found = opened.enter_context(self._engine.connect())
                if _has(found, wanted):
                    stack.push(opened.pop_all())
                    return found
        except sa.exc.SQLAlchemyError as error:
            LOG.warning("The replica of the database failed: %s", error)
        self._not_before = time.monotonic() + BEHIND_SECONDS
        return None


def _has(connection: sa.Connection, wanted: Mapping[str, str | None]) -> bool:
    """Return whether the replica has what is wanted, soon at least."""
    until, pause = time.monotonic() + WAIT_SECONDS, threading.Event()
    while True:
        is_replica, has = connection.execute(_HAS, wanted).one()
        if not is_replica:
            connection.invalidate()  # the next one may lead to another server
        if not is_replica or has:
            return bool(is_replica)
        if time.monotonic() > until:
            LOG.debug("The replica of the database is behind.")
            return False
        pause.wait(_PAUSE_SECONDS)


_replicas: weakref.WeakKeyDictionary[sa.Engine, Replica] = weakref.WeakKeyDictionary()


def use(primary: sa.Engine, replica: sa.Engine) -> None:
    """Have what is read by ``connect(primary)`` read on a replica while it is not behind."""
    _replicas[primary] = Replica(replica)


def connect(engine: sa.Engine) -> contextlib.AbstractContextManager[sa.Connection]:
    """Return a connection of an engine to read on, or to its replica."""
    replica = _replicas.get(engine)
    return engine.connect() if replica is None else replica.connection(engine)

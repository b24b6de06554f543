"""Checks of what APIs need: their databases, the message bus, the loop that takes requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from common import context
from common.process.health import Check, Health

if TYPE_CHECKING:
    import sqlalchemy as sa

    from conductor.rpc import ConductorRpc
    from placement.db.engine import Database

#: how long a check waits for a conductor
PING_SECONDS = 3.0
#: gunicorn's worker looks for connections at least once a second
LOOP_SECONDS = 20.0


def of_api(reader: sa.Engine, conductor: ConductorRpc) -> Health:
    """Return the health of an API of the cloud: it reads the database and asks conductors.

    ``conductor`` waits ``PING_SECONDS`` for answers.
    """

    def answers() -> bool:
        return bool(conductor.ping(context.internal()))

    ready = {"database": _reads(reader), "conductor": answers}
    return Health(alive={"loop": serves}, ready=ready)


def of_placement(database: Database) -> Health:
    """Return the health of placement, which needs its database alone."""

    def reads() -> bool:
        import sqlalchemy

        return bool(database.read(lambda c: c.execute(sqlalchemy.text("SELECT 1")).scalar()))

    return Health(alive={"loop": serves}, ready={"database": reads})


def serves() -> bool:
    """Return whether this worker's loop turns; True under another server than gunicorn."""
    from web import serving

    return serving.turned_at is None or time.monotonic() - serving.turned_at < LOOP_SECONDS


def _reads(reader: sa.Engine) -> Check:
    def check() -> bool:
        import sqlalchemy

        with reader.connect() as connection:
            return bool(connection.execute(sqlalchemy.text("SELECT 1")).scalar())

    return check

"""Which clock each process follows: its database's, or that of the conductors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from common.errors import Unavailable
from common.process.health import Health
from common.process.timekeeping import Ask, Reading, Timekeeper, read

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa
    from oslo_config import cfg

    from common.rpc.messaging import oslo_messaging

#: how long a service without a database waits for a conductor's answer
ANSWER_SECONDS = 3.0


class _NoTimekeeper(Timekeeper):
    """Of a process whose database has its machine's clock: there is nothing to compare."""

    def start(self) -> None:
        """Do nothing."""


def start_of(ask: Ask | None) -> Timekeeper:
    """Return a process's timekeeper, started. Raises ConfigurationError if its machine's clock is
    off too far. None: there is nothing to compare the clock with."""
    timekeeper = Timekeeper(ask) if ask is not None else _NoTimekeeper(lambda: read(float))
    timekeeper.start()
    return timekeeper


def checked(health: Health, timekeeper: Timekeeper) -> Health:
    """Return a service's health: it also needs a clock by which it would have started."""
    return dataclasses.replace(health, ready={**health.ready, "clock": timekeeper.may_serve})


def of_service(
    name: str, conf: cfg.ConfigOpts, bus: Callable[[], oslo_messaging.Transport]
) -> Ask | None:
    """Return what a service's clock is compared with; `bus` makes a transport to the conductors.

    Raises ConfigurationError if it isn't configured.
    """
    if name != "conductor":
        return _of_conductors(bus())
    if not conf.database.connection:
        return None  # it doesn't start
    from db import engine

    return of_database(engine.reader(conf.database.connection, 1))


def of_database(engine: sa.Engine) -> Ask | None:
    """Return how the clock of a database is read; None: it is this machine's."""
    # Only here: a service without a database would have 10 MiB of SQLAlchemy for nothing.
    import sqlalchemy as sa

    from common.databases import times

    if not times.has_own(engine):
        return None

    def ask() -> Reading:
        try:
            with engine.connect() as connection:
                return read(lambda: times.now(connection))
        except sa.exc.SQLAlchemyError as error:
            raise Unavailable(f"The database doesn't answer: {error}") from error

    return ask


def _of_conductors(transport: oslo_messaging.Transport) -> Ask:
    from common import context, rpc
    from common.messages.topics import CONDUCTOR_EVENTS_TOPIC
    from common.rpc.events import ConductorEvents
    from common.rpc.typed import TypedClient

    client: TypedClient[ConductorEvents] = TypedClient(
        rpc.Client(transport, CONDUCTOR_EVENTS_TOPIC), timeout_seconds=ANSWER_SECONDS
    )
    return lambda: read(lambda: client.call(context.internal(), ConductorEvents.time))

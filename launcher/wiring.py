"""The collaborators of each service, the same in the embedded cloud and in separate processes."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from oslo_config import cfg

from common.clients import credentials
from common.errors import ConfigurationError
from common.log import logger
from launcher import databases

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    import requests
    import sqlalchemy as sa
    from keystoneauth1.session import Session

    from common.clients.projects import Projects
    from common.process.health import Health
    from common.process.timekeeping import Ask
    from common.rpc.messaging import oslo_messaging
    from conductor.rpc import ConductorRpc
    from placement.client import PlacementClient


LOG = logger(__name__)


class Service(Protocol):
    """A service that answers messages."""

    @property
    def health(self) -> Health:
        """Whether it lives, and has what it needs."""

    def start(self) -> None:
        """Begin; return at once."""

    def stop(self) -> None:
        """Take no more work, end what is taken."""


class WithScheduler:
    """A conductor, and the scheduler in its process that it asks."""

    def __init__(self, scheduler: Service, conductor: Service) -> None:
        self._first, self._second = scheduler, conductor

    @property
    def health(self) -> Health:
        """The checks of both."""
        return self._second.health.beside("scheduler", self._first.health)

    def start(self) -> None:
        """Begin with the scheduler."""
        self._first.start()
        self._second.start()

    def stop(self) -> None:
        """End the conductor first, which may ask until it has ended."""
        self._second.stop()
        self._first.stop()


class Wiring:
    """The collaborators of one process, each made once, when first needed."""

    def __init__(self, conf: cfg.ConfigOpts, placement_session: Session | None = None) -> None:
        """`placement_session` replaces the session that `[placement]` describes."""
        self.conf = conf
        self.health: Health | None = None
        """Of the APIs made here."""
        self._placement_session = placement_session

    @functools.cached_property
    def transport(self) -> oslo_messaging.Transport:
        """The message bus."""
        from common import rpc

        return rpc.transport(self.conf)

    @functools.cached_property
    def placement(self) -> PlacementClient:
        """The client of placement."""
        from placement.client import PlacementClient

        return PlacementClient(
            credentials.adapter(self.conf, "placement", self._placement_session)
        )

    @functools.cached_property
    def projects(self) -> Projects | None:
        """Which projects there are, by the login of `[placement]`; None where that is not set."""
        from common.clients.projects import Projects

        try:
            session = self._placement_session or credentials.session(self.conf, "placement")
        except ConfigurationError as error:
            LOG.warning("Projects are not checked in Keystone: %s", error.message)
            return None
        return Projects(session)

    def note(self, name: str, health: Health) -> None:
        """Add the health of an API made here."""
        self.health = health if self.health is None else self.health.beside(name, health)

    @functools.cached_property
    def conductor_client(self) -> ConductorRpc:
        """The client of the conductor."""
        from conductor.rpc import connect
        from db.reading import reading
        from db.reads.ledger.calls import looking

        if not self.conf.database.reader_connection:
            return connect(self.transport)
        return connect(self.transport, look=looking(lambda: reading(self.reader)))

    clock: Ask | None = None
    """How the clock of what is made here is read; None: it is this machine's."""

    has_cloud_api = False
    """Whether an API of the cloud was made here."""

    console_listener: socket.socket | None = None
    """What the console proxy listens on, in place of the configured address."""

    @functools.cached_property
    def reader(self) -> sa.Engine:
        """The cloud database, read-only. Raises ConfigurationError when it isn't named."""
        from db import engine, replicas

        options = self.conf.database
        if not options.reader_connection:
            raise ConfigurationError("[database] reader_connection is not set.")
        limits = options.pool_size, options.reader_statement_seconds
        made = engine.reader(options.reader_connection, *limits)
        if options.replica_connection:
            replicas.use(made, engine.reader(options.replica_connection, *limits))
        return made


def conductor(wiring: Wiring) -> Service:
    """Make a conductor."""
    from conductor.service import ConductorService

    conf, transport, placement = wiring.conf, wiring.transport, wiring.placement
    if conf.database.connection:
        databases.require("cloud", conf.database.connection)
    if not conf.conductor.own_scheduler:
        return ConductorService(conf, transport, placement)
    from common import rpc
    from scheduler.client import SchedulerClient
    from scheduler.service import SchedulerService

    near = rpc.within(conf)
    return WithScheduler(
        SchedulerService(conf, transport, placement, near),
        ConductorService(conf, transport, placement, SchedulerClient(transport, near)),
    )


def scheduler(wiring: Wiring) -> Service:
    """Make a scheduler."""
    from scheduler.service import SchedulerService

    return SchedulerService(wiring.conf, wiring.transport, wiring.placement)


def compute(wiring: Wiring) -> Service:
    """Make a worker with the agents of the configured hosts."""
    from compute import drivers
    from compute.worker.service import ComputeService

    made = drivers.hypervisors(wiring.conf)
    rounds = drivers.rounds(wiring.conf, made)
    return ComputeService(wiring.conf, wiring.transport, made, wiring.placement, rounds)


def console(wiring: Wiring) -> Service:
    """Make a console proxy."""
    from console.service import ConsoleService

    return ConsoleService(wiring.conf, wiring.transport, wiring.console_listener)


SERVICES: Mapping[str, Callable[[Wiring], Service]] = {
    "conductor": conductor,
    "scheduler": scheduler,
    "compute": compute,
    "console": console,
}


def compute_api(wiring: Wiring) -> WSGIApplication:
    """Make the compute API."""
    from api.compute.app import make_app

    _note_health(wiring)
    return _wsgi(
        make_app(wiring.conf, wiring.conductor_client, wiring.reader, projects=wiring.projects)
    )


def image_api(wiring: Wiring) -> WSGIApplication:
    """Make the image API."""
    from api.image.app import make_app

    _note_health(wiring)
    return _wsgi(make_app(wiring.conf, wiring.reader, conductor=wiring.conductor_client))


def network_api(wiring: Wiring) -> WSGIApplication:
    """Make the network API."""
    from api.network.app import make_app

    _note_health(wiring)
    return _wsgi(make_app(wiring.conf, wiring.reader, conductor=wiring.conductor_client))


def volume_api(wiring: Wiring) -> WSGIApplication:
    """Make the Block Storage API."""
    from api.volume.app import make_app

    _note_health(wiring)
    return _wsgi(make_app(wiring.conf, wiring.reader, wiring.conductor_client))


def clustering_api(wiring: Wiring) -> WSGIApplication:
    """Make the clustering API."""
    from api.clustering.app import make_app

    _note_health(wiring)
    return _wsgi(make_app(wiring.conf, wiring.reader, wiring.conductor_client))


def placement_api(wiring: Wiring) -> WSGIApplication:
    """Make placement."""
    from launcher import clocks, health
    from placement.app import make_app, make_services

    databases.require("placement", wiring.conf.placement_database.connection)
    services = make_services(wiring.conf)
    wiring.clock = wiring.clock or clocks.of_database(services.database.reader)
    wiring.note("placement", health.of_placement(services.database))
    return _wsgi(make_app(wiring.conf, services=services))


def dashboard(wiring: Wiring, transport: requests.Session | None = None) -> WSGIApplication:
    """Make the dashboard; `transport` carries its requests to the APIs."""
    from dashboard.app import make_app

    return _wsgi(make_app(wiring.conf, transport))


APIS: Mapping[str, Callable[[Wiring], WSGIApplication]] = {
    "compute": compute_api,
    "placement": placement_api,
    "image": image_api,
    "network": network_api,
    "volume": volume_api,
    "clustering": clustering_api,
}
"""{name, which is also the path in the embedded cloud: what makes the application}."""


def _note_health(wiring: Wiring) -> None:
    """Note what every API of the cloud needs, once for all of them."""
    from conductor.rpc import connect
    from launcher import clocks, health

    if not wiring.has_cloud_api:
        wiring.has_cloud_api = True
        databases.require("cloud", wiring.conf.database.reader_connection)
        wiring.clock = wiring.clock or clocks.of_database(wiring.reader)
        wiring.note(
            "cloud", health.of_api(wiring.reader, connect(wiring.transport, health.PING_SECONDS))
        )


def _wsgi(app: Any) -> WSGIApplication:
    made: WSGIApplication = app
    return made

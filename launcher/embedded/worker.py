"""The worker of the cloud process: the APIs, conductor, scheduler, agents, console proxy."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import requests

from common import log
from common.clients import credentials, direct
from common.errors import MicronovaError
from common.process import garbage
from common.process.child import report
from common.process.health import Health
from launcher import configuration, metrics, wiring
from launcher.embedded import settings
from launcher.embedded.inprocess import WsgiAdapter
from launcher.embedded.ready import Readiness
from launcher.mount import Mount
from web.proxies import Proxies

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from keystoneauth1.session import Session

LOG = log.logger(__name__)

ORDER = ("conductor", "scheduler", "compute", "console")
"""Started in this order, stopped in the reverse one."""


class Cloud:
    """All services of the embedded cloud but Keystone, in one process."""

    def __init__(self, config_file: str, console_listener: int, metrics_listener: int) -> None:
        """Numbers of the sockets for the console proxy, and for metrics."""
        self._config_file = config_file
        self._console_listener = console_listener
        self._metrics_listener = metrics_listener
        self._services: list[tuple[str, wiring.Service]] = []
        self._stopping = threading.Event()
        self._starter: threading.Thread | None = None

    def application(self) -> WSGIApplication:
        """Return every API below its name."""
        try:
            report(step="loading the services")
            garbage.limit_arenas()
            self._conf = configuration.load([self._config_file], settings.register)
            log.setup(self._conf, "cloud")
            of_placement = wiring.Wiring(self._conf)
            placement = wiring.placement_api(of_placement)
            self._wiring = wiring.Wiring(self._conf, self._session(placement))
            # A copy: what closes it must leave the socket to the worker that comes after this one.
            self._wiring.console_listener = _copy(self._console_listener)
            others = (name for name in wiring.APIS if name != "placement")
            apps = {name: wiring.APIS[name](self._wiring) for name in others}
            apps["dashboard"] = wiring.dashboard(self._wiring, self._transport(placement, apps))
            self._health = Health().beside("placement", of_placement.health or Health())
            self._health = self._health.beside("api", self._wiring.health or Health())
            return Proxies(Mount({"placement": placement, **apps}), self._conf)
        except Exception as error:
            report(error=_line(error))
            raise

    def _session(self, placement: WSGIApplication) -> Session:
        """Return the services' session, which reaches placement without a socket."""
        session = credentials.session(self._conf, "placement")
        base_url = self._conf.embedded.base_url
        path = "/placement"
        session.session.mount(f"{base_url}{path}", WsgiAdapter(placement, path))
        return session

    def _transport(
        self, placement: WSGIApplication, apps: Mapping[str, WSGIApplication]
    ) -> requests.Session:
        """Return what reaches the APIs of this process without a socket, and a thread of it."""
        made = direct.session()
        for name, app in {"placement": placement, **apps}.items():
            made.mount(f"{self._conf.embedded.base_url}/{name}", WsgiAdapter(app, f"/{name}"))
        return made

    def start(self, give_up: Callable[[], None]) -> None:
        """Start the services while the port is served already; `give_up` ends the process.

        They need the APIs (the agents publish to placement), so this returns before they run.
        """
        taken, starting = _copy(self._metrics_listener), Health(ready={"start": lambda: False})
        self._listener = metrics.listen(self._conf, "api", starting, taken)
        self._starter = threading.Thread(
            target=self._start, args=(give_up,), name="start", daemon=True
        )
        self._starter.start()

    def stop(self) -> None:
        """Stop the services, last one first."""
        self._stopping.set()
        if self._starter is not None:
            self._starter.join()
        while self._services:
            name, service = self._services.pop()
            report(step=f"waiting for the {name}")
            service.stop()

    def _start(self, give_up: Callable[[], None]) -> None:
        try:
            for name in ORDER:
                if self._stopping.is_set():
                    return
                if name == "console" and importlib.util.find_spec("websockets") is None:
                    LOG.warning("No console proxy starts: the package websockets is missing.")
                    continue
                report(step=f"starting the {name}")
                service = wiring.SERVICES[name](self._wiring)
                service.start()
                self._services.append((name, service))
                self._health = self._health.beside(name, service.health)
            Readiness(self._wiring, self._stopping).wait(report)
            if self._listener is not None:
                self._listener.health = self._health
            garbage.settle()
        except Exception as error:
            if not self._stopping.is_set():
                LOG.exception("The cloud can't start.")
                report(error=_line(error))
                give_up()
        else:
            report(ready=True)


def _copy(number: int) -> socket.socket:
    """Return a duplicate of a listening socket, as the next worker needs the original."""
    return socket.socket(fileno=os.dup(number))


def _line(error: Exception) -> str:
    if isinstance(error, MicronovaError):
        return error.message
    return f"{type(error).__name__}: {error}".splitlines()[0]

"""The embedded cloud's process tree: start, watch and stop it in order.

    micronova up ── simulator            simulated Proxmox clusters, unless a real one is used
                 ├─ Keystone             gunicorn and its worker
                 └─ cloud                gunicorn and its worker: every API, every service

Children run in sessions of their own, so that Ctrl-C reaches this process alone, and die with it,
however it ends. If a child dies, everything stops: the user who started `micronova up` starts it
again. A worker of gunicorn that dies is replaced by its master, which is reported.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import selectors
import signal
import socket
import time
from pathlib import Path
from types import FrameType
from typing import Any

from common.errors import ConfigurationError
from common.process.child import Child, ChildFailed, python
from launcher.embedded import region
from launcher.embedded.ending import Ending
from launcher.embedded.hypervisors import real_clusters, simulated_clusters, simulator_arguments
from launcher.embedded.identity import ForeignKeystone, Identity, OwnKeystone
from launcher.embedded.progress import Progress
from launcher.embedded.settings import Sections, Settings, sections, write_configuration
from launcher.embedded.signals import numbers, received_signals

SIMULATOR_SECONDS = 240
PREPARATION_SECONDS = 600
CLOUD_SECONDS = 600
"""Longer than the cloud itself waits for a part that doesn't move."""

METRICS_HOST = "127.0.0.1"

_SIMULATOR = "simulator"

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Supervisor:
    """Starts and stops what the settings describe; use once."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self._settings = settings
        self._progress = progress
        self._ending = Ending(self._say)
        self._sockets = contextlib.ExitStack()
        self._children: list[Child] = []
        self._watched: list[Child] = []
        self._identity: Identity | None = None
        self._replaced: dict[str, float] = {}
        """{part whose worker ended: when}."""
        self.base_url = ""
        self.metrics_address = ""
        self.auth_url = ""

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop everything; the cloud before Keystone and the simulator."""
        users = [child for child in self._children if child.name != _SIMULATOR]
        used = [child for child in self._children if child.name == _SIMULATOR]
        used[:0] = self._identity_process()
        self._progress.abort()
        if any(part.pid is not None for part in (*users, *used)):
            self._say("stopping; what is under way is finished first (Ctrl-C again: at once)")
        self._ending.run([users, used])
        for part in (*users, *used):
            part.stop()
        self._sockets.close()
        self._progress.end()

    @property
    def was_cut_short(self) -> bool:
        """Whether a second signal killed what was still stopping."""
        return self._ending.was_cut_short

    def start(self) -> None:
        """Start everything and return when it is ready.

        Raises ConfigurationError or Unavailable, one line, for what is in the way.
        """
        settings, step = self._settings, self._progress.step
        step(f"taking the ports, state in {settings.state_dir}")
        listener = self._listen(settings.port, "choose one with --port")
        self.base_url = settings.url(_port(listener))
        after = "it is the second after --port: choose another"
        console_listener = self._listen(settings.port + 2 if settings.port else 0, after)
        metrics_listener = self._listen_metrics()
        self.metrics_address = "{}:{}".format(*metrics_listener.getsockname()[:2])
        identity = self._find_identity(listener)
        driver = self._driver_sections()
        content = functools.partial(
            sections,
            settings,
            self.base_url,
            settings.url(_port(console_listener)),
            identity.credentials(),
            driver,
            metrics_port=_port(metrics_listener),
            joined_urls=self._region.base_urls if identity.joins else (),
        )
        config_file = write_configuration(settings, content(hosts=1))
        preparation = self._child("preparation", "launcher.embedded.prepare", str(config_file))
        self._start_child(preparation)
        if not settings.proxmox:
            identity.start(self.base_url, self._say_of_keystone)
        hosts = self._follow(preparation, PREPARATION_SECONDS)["hosts"]
        if (
            settings.proxmox
        ):  # the options of a real cluster may be wrong: checked before anything slow
            identity.start(self.base_url, self._say_of_keystone)
        write_configuration(settings, content(hosts=hosts))
        self._start_cloud(config_file, listener, console_listener, metrics_listener)
        identity.write_client_files()
        region.note(settings.state_dir, self._region.only(self.base_url))
        self._progress.end()

    def watch(self) -> None:
        """Never return: raise Interrupted at a signal, ChildFailed when a child ended.

        Reports workers that end and are replaced while it waits.
        """
        # Blocked before and after, so that none disturbs the end; received in between.
        signal.pthread_sigmask(signal.SIG_BLOCK, (*SIGNALS, signal.SIGCHLD))
        with received_signals() as wakeup:
            while True:
                self._hear()
                self._reap()
                self._require_all()
                self._wait(wakeup)
                for number in numbers(wakeup):
                    if number in SIGNALS:
                        raise Interrupted(number)

    def _wait(self, wakeup: int) -> None:
        """Return after a signal, or when a part has reported something."""
        with selectors.DefaultSelector() as selector:
            selector.register(wakeup, selectors.EVENT_READ)
            for descriptor in (part.fileno() for part in self._parts()):
                if descriptor is not None:
                    selector.register(descriptor, selectors.EVENT_READ)
            selector.select()

    def _parts(self) -> list[Child]:
        return [*self._watched, *self._identity_process()]

    def _identity_process(self) -> list[Child]:
        process = self._identity.process if self._identity is not None else None
        return [] if process is None else [process]

    def _hear(self) -> None:
        """Show workers that ended, and those that replaced them."""
        for part in self._parts():
            for message in part.reports():
                if "ended" in message:
                    self._replaced.setdefault(part.name, time.monotonic())
                    self._progress.note(
                        f"A worker of {part.title} ended ({message['ended']}); it is replaced. "
                        f"See {part.log_path}."
                    )
                elif message.get("ready") and part.name in self._replaced:
                    seconds = time.monotonic() - self._replaced.pop(part.name)
                    self._progress.note(
                        f"{_capital(part.title)} works again after {seconds:.1f} s."
                    )

    def _reap(self) -> None:
        """Collect the exit codes of children that have ended, so that none remains a zombie."""
        for child in self._children:
            _ = child.pid  # asks the system

    def _require_all(self) -> None:
        """Raise ChildFailed when a part has ended."""
        for part in self._parts():
            if part.pid is None:
                raise ChildFailed(
                    f"{_capital(part.title)} ended ({part.exit_text()}); see {part.log_path}.",
                    child=part.name,
                )

    # --- parts

    def _listen(self, port: int, otherwise: str, host: str | None = None) -> socket.socket:
        """Return a listening socket. Raises ConfigurationError; `otherwise` is the way out."""
        host = host or self._settings.host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            taken = socket.create_server((host, port), family=family, backlog=512)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ConfigurationError(
                    f"Port {port} on {host} is in use by another process; {otherwise}."
                ) from error
            reason = error.strerror or str(error)
            raise ConfigurationError(f"Can't listen on {host} port {port}: {reason}.") from error
        self._sockets.callback(taken.close)
        return taken

    def _listen_metrics(self) -> socket.socket:
        """Return the socket for metrics: on this machine alone, unless it was chosen otherwise."""
        settings = self._settings
        chosen = settings.chosen.get("metrics", {})
        port = int(chosen.get("port", settings.port + 3 if settings.port else 0))
        after = "it is the third after --port: choose another, or --set metrics.port=…"
        return self._listen(port, after, chosen.get("host", METRICS_HOST))

    def _find_identity(self, listener: socket.socket) -> Identity:
        """Return who checks tokens; its port is taken. Raises ConfigurationError."""
        settings = self._settings
        chosen = region.chosen(settings.state_dir, settings.region)
        identity: Identity
        if settings.keystone is None:
            port = _port(listener) + 1 if settings.port else 0
            identity = OwnKeystone(settings, port, chosen)
        else:
            identity = ForeignKeystone(settings, chosen)
        self._sockets.callback(identity.stop)
        self._region = chosen.with_url(self.base_url)
        region.note(settings.state_dir, self._region)
        self._identity, self.auth_url = identity, identity.auth_url
        return identity

    def _say_of_keystone(self, text: str) -> None:
        self._progress.step(f"Keystone: {text}")

    def _driver_sections(self) -> Sections:
        """Return the driver's sections; starts the simulator where one is used."""
        settings = self._settings
        if settings.proxmox:
            return real_clusters(settings)
        if not settings.simulated:
            return {}
        folder = settings.state_dir / "simulator"
        child = self._child(_SIMULATOR, "simulator", *simulator_arguments(settings, folder))
        self._progress.step(f"simulating {settings.clusters} × {settings.nodes} Proxmox VE nodes")
        self._start_child(child)
        endpoints = self._follow(child, SIMULATOR_SECONDS)["endpoints"]
        self._watched.append(child)
        return simulated_clusters(folder, endpoints, self._settings.speed)

    def _start_cloud(self, config_file: Path, *listeners: socket.socket) -> None:
        numbers = tuple(one.fileno() for one in listeners)
        child = self._child(
            "cloud",
            "launcher.embedded.cloud",
            str(config_file),
            *map(str, numbers),
            pass_fds=numbers,
        )
        self._start_child(child)
        self._follow(child, CLOUD_SECONDS)
        self._watched.append(child)

    def _child(
        self, name: str, module: str, *arguments: str, pass_fds: tuple[int, ...] = ()
    ) -> Child:
        log = self._settings.state_dir / "log" / f"{name}.log"
        return Child(name, python(module, *arguments), log, pass_fds=pass_fds)

    def _start_child(self, child: Child) -> None:
        """Start it; it is stopped with the rest."""
        self._children.append(child)
        child.start()

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal may be what is gone
            self._progress.step(text)

    def _follow(self, child: Child, seconds: float) -> dict[str, Any]:
        """Show the child's steps until it is ready; return what it then says.

        It may take any time, but must report something every so many seconds.
        """
        message: dict[str, Any] = {}
        for message in child.messages(seconds):
            if "step" in message:
                self._progress.step(message["step"])
            elif "detail" in message:
                self._progress.detail(message["detail"])
            elif "note" in message:
                self._progress.note(message["note"])
        return message


def _port(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]


def interrupt(number: int, _frame: FrameType | None) -> None:
    """Handle a signal during the start: end it."""
    for each in SIGNALS:  # the end has begun; it isn't to be interrupted
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(number)

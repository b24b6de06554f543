"""Open consoles of this worker's VMs: each is passed on to the proxy that asked for it."""

from __future__ import annotations

import collections
import importlib.util
import threading

from oslo_config import cfg

from common.counting import counted
from common.errors import Conflict, Unavailable
from common.log import logger
from common.messages.consoles import ConsoleTarget, ConsoleType
from common.messages.questions import OpenConsole
from common.streams import LIBRARY_LOG, Stream, WebSocketStream, relay, tls
from compute.hypervisor.port import Hypervisor, HypervisorError
from compute.observed.console_logs import ConsoleLogs, Kept

LOG = logger(__name__)

CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 2.0


class Consoles:
    """The sessions of one worker; it counts them, since all of a server's pass through it."""

    def __init__(self, conf: cfg.ConfigOpts, logs: ConsoleLogs) -> None:
        options = conf.compute
        self._logs = logs
        self._most, self._most_of_server = options.consoles, options.consoles_of_server
        self._ca_file: str | None = options.console_ca_file
        self._lock = threading.Lock()
        self._of_server: collections.Counter[str] = collections.Counter()
        self._open: set[Stream] = set()

    @staticmethod
    def problem(hypervisor: Hypervisor, target: ConsoleTarget) -> str | None:
        """Return why a VM can have no such console, or None. Raises HypervisorError."""
        if importlib.util.find_spec("websockets") is None:
            return "The package websockets is not installed where the agent is."
        return hypervisor.console_problem(target)

    def open(self, hypervisor: Hypervisor, order: OpenConsole) -> None:
        """Open a console and connect it to the proxy; return when both ends are there.

        Raises Conflict where too many are open, Unavailable where an end doesn't answer.
        """
        server = order.target.server_uuid
        self._enter(server)
        try:
            guest, proxy = self._both_ends(hypervisor, order)
        except BaseException:
            self._leave(server)
            raise
        with self._lock:
            self._open |= {guest, proxy}
        threading.Thread(
            target=self._session, args=(server, guest, proxy), name="console", daemon=True
        ).start()

    def stop(self) -> None:
        """Close all consoles."""
        with self._lock:
            streams = list(self._open)
        for stream in streams:
            stream.close()

    def _enter(self, server: str) -> None:
        with self._lock:
            if self._of_server[server] >= self._most_of_server:
                raise Conflict(
                    f"Server {server} has {counted(self._most_of_server, 'console')} open."
                )
            if self._of_server.total() >= self._most:
                raise Conflict(f"This worker has {counted(self._most, 'console')} open.")
            self._of_server[server] += 1

    def _leave(self, server: str) -> None:
        with self._lock:
            self._of_server[server] -= 1
            if not self._of_server[server]:
                del self._of_server[server]

    def _both_ends(self, hypervisor: Hypervisor, order: OpenConsole) -> tuple[Stream, Stream]:
        server, serial = order.target.server_uuid, order.target.type is ConsoleType.SERIAL
        if serial:
            # A line has one reader.
            self._logs.let_go(server)
        try:
            guest = hypervisor.open_console(order.target)
        except HypervisorError as error:
            LOG.warning("Server %s: its console can't be opened: %s", server, error.message)
            raise Unavailable("The console can't be opened.") from error
        try:
            proxy = self._dial(order)
            return Kept(guest, self._logs, server) if serial else guest, proxy
        except Unavailable:
            guest.close()
            raise

    def _dial(self, order: OpenConsole) -> Stream:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        secure = order.relay_url.startswith("wss:")
        try:
            return WebSocketStream(
                connect(
                    order.relay_url,
                    ssl=tls(self._ca_file) if secure else None,
                    additional_headers={"Authorization": f"Bearer {order.grant}"},
                    compression=None,
                    legacy=True,
                    proxy=None,
                    open_timeout=CONNECT_SECONDS,
                    close_timeout=CLOSE_SECONDS,
                    max_size=None,
                    logger=LIBRARY_LOG,
                )
            )
        except (OSError, WebSocketException) as error:
            LOG.warning("The console proxy at %s doesn't answer: %s", order.relay_url, error)
            raise Unavailable("The console proxy can't be reached by the agent.") from None

    def _session(self, server: str, guest: Stream, proxy: Stream) -> None:
        try:
            relay(guest, proxy)
        finally:
            with self._lock:
                self._open -= {guest, proxy}
            self._leave(server)

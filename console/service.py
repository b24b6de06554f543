"""The console proxy as a service: one port for pages, browsers' websockets and agents."""

from __future__ import annotations

import functools
import http
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oslo_config import cfg
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeader
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

from common import context
from common.errors import ConfigurationError
from common.log import logger
from common.messages.topics import CONDUCTOR_EVENTS_TOPIC
from common.process.health import Health
from common.streams import LIBRARY_LOG, WebSocketStream
from compute.client import ComputeClient
from conductor import rpc as conductor_rpc
from console import doors, origins, tls
from console.doors import Doors, Entrance
from console.pages import Pages
from console.proxy import Proxy, Refused, token_of
from console.sessions import Sessions

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging

LOG = logger(__name__)

RELAY_PATH = "/relay"
_BEARER = "Bearer "
_BINARY = Subprotocol("binary")
_CLOSE_SECONDS = 2.0
_PING_SECONDS = 3.0
#: what a browser may send in one message, such as a pasted text
_LONGEST = 4 << 20


class ConsoleService:
    """Listens until it is stopped; open sessions end with it."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: oslo_messaging.Transport,
        listener: socket.socket | None = None,
        *,
        open_seconds: float = doors.OPEN_SECONDS,
    ) -> None:
        """`listener`: a socket that listens already, in place of the configured address."""
        self._options, self._open_seconds = conf.console, open_seconds
        self._pages = Pages()
        self._sessions = Sessions(self._options.sessions)
        self._doors = Doors()
        self._conductor = conductor_rpc.connect(transport, topic=CONDUCTOR_EVENTS_TOPIC)
        self._pinged = conductor_rpc.connect(
            transport, _PING_SECONDS, topic=CONDUCTOR_EVENTS_TOPIC
        )
        self._proxy = Proxy(
            self._conductor,
            ComputeClient(transport),
            self._sessions,
            self._options.relay_url,
        )
        self._tls = tls.context(self._options)
        self._listener = listener
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def health(self) -> Health:
        """It lives if its port is served; it needs a conductor, which knows the tokens."""
        return Health({"port": self._serves}, {"conductor": self._asks})

    def _serves(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _asks(self) -> bool:
        return bool(self._pinged.ping(context.internal()))

    def start(self) -> None:
        """Listen; returns at once. Raises ConfigurationError."""
        listener = self._listener or _listen(self._options.host, self._options.port)
        self._server = serve(
            self._handle,
            sock=Entrance.of(listener, self._doors),
            process_request=self._before,
            select_subprotocol=_subprotocol,
            compression=None,
            server_header=None,
            open_timeout=self._open_seconds,
            close_timeout=_CLOSE_SECONDS,
            max_size=_LONGEST,
            logger=LIBRARY_LOG,
        )
        self._server.handler = self._released(self._server.handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="console-proxy", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close the port and all sessions."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()

    def _released(self, handle: Callable[[socket.socket, Any], None]) -> Any:
        """Return what handles a connection, and then counts it no longer."""

        def handle_and_release(connection: socket.socket, address: Any) -> None:
            try:
                handle(self._encrypted(connection), address)
            finally:
                self._doors.release(address)

        return handle_and_release

    def _encrypted(self, connection: socket.socket) -> socket.socket:
        """Return a connection behind its TLS, if there is any; a closed one after a failure."""
        if self._tls is None:
            return connection
        try:
            return tls.encrypted(connection, self._tls, self._open_seconds)
        except OSError as error:
            LOG.info("A client began no TLS: %s", error)
            return connection  # the library finds it closed, and counts its thread no longer

    def _before(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer what is no websocket, and refuse pages of others; None: go on."""
        host = request.headers.get("Host", "")
        if "Upgrade" not in request.headers:
            page = self._pages.get(request.path, host)
            if page is None:
                return connection.respond(http.HTTPStatus.NOT_FOUND, "Not found.\n")
            return Response(200, "OK", Headers(page.headers), page.content)
        try:
            why = origins.refusal(
                request.headers.get("Origin"),
                host,
                request.headers.get("X-Forwarded-Proto"),
                self._options.allowed_origins,
                (self._options.novnc_url, self._options.serial_url),
            )
        except (ValueError, InvalidHeader):
            why = "Origin header not valid."
        if why is None:
            return None
        LOG.warning("A console is refused: %s", why)
        return connection.respond(http.HTTPStatus.FORBIDDEN, f"{why}\n")

    def _handle(self, connection: ServerConnection) -> None:
        request = connection.request
        if request is None:
            return
        stream, address = WebSocketStream(connection), connection.remote_address
        opened = functools.partial(self._doors.release, address)
        if urlsplit(request.path).path == RELAY_PATH:
            given = request.headers.get("Authorization", "")
            if not self._sessions.join(given.removeprefix(_BEARER), stream, opened):
                connection.close(CloseCode.POLICY_VIOLATION, "Nobody waits for this.")
            return
        token = token_of(request.path)
        try:
            if not token:
                raise Refused("The address has no token.")
            self._doors.is_asking(address)
            self._proxy.serve(stream, token, opened)
        except Refused as refused:
            connection.close(refused.code, str(refused))


def _subprotocol(_connection: ServerConnection, offered: object) -> Subprotocol | None:
    return _BINARY if isinstance(offered, list | tuple) and _BINARY in offered else None


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ConfigurationError(
            f"[console] can't listen on {host} port {port}: {error.strerror or error}."
        ) from error

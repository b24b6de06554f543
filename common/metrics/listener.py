"""The port of a service for operators: ``/metrics``, ``/healthz`` and ``/readyz``."""

from __future__ import annotations

import http.server
import socket
import socketserver
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from common.health import Answer, Health
from common.log import logger
from common.metrics import sharing

LOG = logger(__name__)

#: until a port that another process has is tried again
AGAIN_SECONDS = 5.0
#: a client that is silent for so long is let go
_CLIENT_SECONDS = 10.0
#: connections that are answered at a time; others wait
_AT_ONCE = 8
_PLAIN = "text/plain; charset=utf-8"


class Listener:
    """Answers in threads of its own, until the process ends or it is stopped."""

    def __init__(self, address: tuple[str, int] | socket.socket, health: Health) -> None:
        """`address`: host and port, or a socket that listens already."""
        self._address, self.health = address, health
        self._alive = Answer(lambda: self.health.alive)
        self._ready = Answer(lambda: self.health.ready)
        self._stopped = threading.Event()
        self._server: _Server | None = None
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def start(self) -> None:
        """Start; returns at once, whether or not the port is free."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        self._stopped.set()
        if self._server is not None:
            self._server.shutdown()

    def wait_port(self, seconds: float) -> int:
        """Return the port once it is open; 0 if it isn't in time."""
        self._opened.wait(seconds)
        return 0 if self._server is None else int(self._server.server_address[1])

    def _run(self) -> None:
        sharing.await_turn()
        listener = self._listen()
        if listener is None:
            return
        with _Server(listener, self._answer) as server:
            self._server = server
            self._opened.set()
            if not self._stopped.is_set():
                server.serve_forever()

    def _listen(self) -> socket.socket | None:
        """Return the listening socket, once the port is free; None: stopped before."""
        if isinstance(self._address, socket.socket):
            return self._address
        host, port = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        warned = False
        while not self._stopped.is_set():
            try:
                return socket.create_server((host, port), family=family, backlog=32)
            except OSError as error:
                if not warned:
                    LOG.warning(
                        "[metrics] can't listen on %s port %d: %s. It is tried again; the service "
                        "works without.",
                        *(host, port, error.strerror or error),
                    )
                warned = True
            self._stopped.wait(AGAIN_SECONDS)
        return None

    def _answer(self, path: str) -> tuple[HTTPStatus, str, bytes] | None:
        """Return status, content type and body; None: there is no such path."""
        if path == "/metrics":
            from common.metrics import exposition

            return HTTPStatus.OK, exposition.CONTENT_TYPE, exposition.text()
        answers = {"/healthz": self._alive, "/readyz": self._ready}
        if path not in answers:
            return None
        if answers[path].ok():
            return HTTPStatus.OK, _PLAIN, b"ok\n"
        return HTTPStatus.SERVICE_UNAVAILABLE, _PLAIN, b"not ok\n"


Respond = Callable[[str], tuple[HTTPStatus, str, bytes] | None]


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, respond: Respond) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()[:2]
        self.respond = respond
        self._room = threading.BoundedSemaphore(_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._room.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.info("A request for metrics from %s was not answered.", client_address, exc_info=True)


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = _CLIENT_SECONDS
    server: _Server
    server_version = "micronova"
    sys_version = ""

    def do_GET(self) -> None:
        found = self.server.respond(self.path.partition("?")[0])
        status, kind, body = found or (HTTPStatus.NOT_FOUND, _PLAIN, b"not found\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - of http.server
        """Log nothing: somebody asks every few seconds."""

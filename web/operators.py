"""The port of a service for operators: ``/metrics``, ``/healthz``, ``/readyz``, ``/inservice``.

One loop holds all connections. Each path has a thread of its own: /healthz answers whatever silent
clients, a slow scrape or a database that doesn't answer do.
"""

from __future__ import annotations

import contextlib
import queue
import selectors
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus

from common.log import logger
from common.metrics import sharing
from common.process.health import Answer, Health, PromptAnswer, stays, takes_new
from web.connections import TOO_LARGE, Connection, refusal
from web.incoming import HeadTooLarge
from web.loop import Loop

LOG = logger(__name__)

#: until a port that another process has is tried again
AGAIN_SECONDS = 5.0
#: connections at a time, and the share of one address
PLACES, PEER_SHARE = 64, 0.5
#: requests for one path that wait or are answered; all paths together leave places of an address
WAITING = 8
_PLAIN = "text/plain; charset=utf-8"
_HEAD = (
    "HTTP/1.1 {status} {phrase}\r\nServer: micronova\r\nConnection: close\r\n"
    "Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
)

_MALFORMED = refusal("400 Bad Request", "This is no HTTP request.")
_METHOD = refusal("405 Method Not Allowed", "Only GET and HEAD are allowed.")
_UNKNOWN = refusal("404 Not Found", "not found\n")
_BUSY = refusal("503 Service Unavailable", "Too many requests for this at a time.")

Respond = Callable[[], tuple[HTTPStatus, str, bytes]]
"""Returns status, content type and body."""


class Listener:
    """Answers in threads of its own, until the process ends or it is stopped."""

    def __init__(
        self,
        address: tuple[str, int] | socket.socket,
        health: Health,
        metrics: Respond | None = None,
        *,
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        """`address`: host and port, or a socket that listens already."""
        self._address, self.health = address, health
        self._again_seconds = again_seconds
        alive = Answer(lambda: self.health.alive)
        ready = Answer(lambda: {**self.health.ready, "presence": stays})
        serving = PromptAnswer(lambda: self.health.ready, takes=takes_new)
        self._paths: Mapping[str, Respond] = {
            "/metrics": metrics or _metrics,
            "/healthz": lambda: _status(alive),
            "/readyz": lambda: _status(ready, self.health.noted),
            # For HAProxy's disable-on-404: it may only take down what is frozen or gone.
            "/inservice": lambda: _status(serving, otherwise=HTTPStatus.NOT_FOUND),
        }
        self._stopped = threading.Event()
        self._loop: _Loop | None = None
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operators", daemon=True)

    def start(self) -> None:
        """Start; returns at once, whether or not the port is free."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        self._stopped.set()
        if self._loop is not None:
            self._loop.wake()

    def wait_port(self, seconds: float) -> int:
        """Return the port once it is open; 0 if it isn't in time."""
        self._opened.wait(seconds)
        return 0 if self._loop is None else self._loop.port

    def _run(self) -> None:
        sharing.await_turn()
        listener = self._listen()
        if listener is None:
            return
        self._loop = _Loop(listener, self._paths)
        self._opened.set()
        self._loop.run(self._stopped)

    def _listen(self) -> socket.socket | None:
        """Return the listening socket, once the port is free; None: stopped before."""
        if isinstance(self._address, socket.socket):
            return self._address
        host, port = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        warned = False
        while not self._stopped.is_set():
            try:
                return socket.create_server((host, port), family=family, backlog=PLACES)
            except OSError as error:
                if not warned:
                    LOG.warning(
                        "[metrics] can't listen on %s port %d: %s. It is tried again; the service "
                        "works without.",
                        *(host, port, error.strerror or error),
                    )
                warned = True
            self._stopped.wait(self._again_seconds)
        return None


def _metrics() -> tuple[HTTPStatus, str, bytes]:
    from common.metrics import exposition

    return HTTPStatus.OK, exposition.CONTENT_TYPE, exposition.text()


def _status(
    answer: Answer,
    noted: Callable[[], Iterable[str]] = tuple,
    otherwise: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE,
) -> tuple[HTTPStatus, str, bytes]:
    if answer.ok():
        lines = "".join(f"{line}\n" for line in ("ok", *noted()))
        return HTTPStatus.OK, _PLAIN, lines.encode()
    return otherwise, _PLAIN, b"not ok\n"


class _Thread:
    """The thread that answers one path; it starts with the first request."""

    def __init__(self, path: str, respond: Respond) -> None:
        self._path, self._respond = path, respond
        self._asked: queue.SimpleQueue[Callable[[bytes, bytes], None] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._started = False

    def ask(self, answered: Callable[[bytes, bytes], None]) -> bool:
        """Queue a request; `answered` is called with its head and body. Called by the loop.

        False: too many wait already.
        """
        if self._waiting >= WAITING:
            return False
        self._waiting += 1
        self._asked.put(answered)
        if not self._started:
            self._started = True
            name = f"operators {self._path}"
            threading.Thread(target=self._run, name=name, daemon=True).start()
        return True

    def ended(self) -> None:
        """Count a request that was answered; of the loop."""
        self._waiting -= 1

    def stop(self) -> None:
        """End the thread, once it has answered what waits."""
        self._asked.put(None)

    def _run(self) -> None:
        while (answered := self._asked.get()) is not None:
            try:
                status, kind, body = self._respond()
            except Exception:
                LOG.exception("%s can't be answered.", self._path)
                status, kind, body = HTTPStatus.INTERNAL_SERVER_ERROR, _PLAIN, b"failed\n"
            head = _HEAD.format(
                status=status.value, phrase=status.phrase, kind=kind, length=len(body)
            )
            answered(head.encode("ascii"), body)


class _Loop(Loop):
    """The connections; each has one request."""

    request_seconds = 5.0
    answer_seconds = 10.0
    draining_seconds = 5.0

    def __init__(self, listener: socket.socket, paths: Mapping[str, Respond]) -> None:
        self.port = int(listener.getsockname()[1])
        self._listener = listener
        self._threads = {path: _Thread(path, respond) for path, respond in paths.items()}
        self._done: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._accepts = False
        self.poller = selectors.DefaultSelector()
        self._begin_with(PLACES, PEER_SHARE)

    def wake(self) -> None:
        """Wake the loop, so that it handles finished answers; from any thread."""
        with contextlib.suppress(OSError):  # it is about to wake, or has ended
            self._waker.send(b"w")

    def run(self, stopped: threading.Event) -> None:
        """Serve until `stopped` is set and the loop is woken; then close everything."""
        self._listener.setblocking(False)
        self.poller.register(self._woken, selectors.EVENT_READ, self._finish)
        while not stopped.is_set():
            if not self._accepts:
                self.poller.register(self._listener, selectors.EVENT_READ, self.accept)
                self._accepts = True
            for key, _ in self.poller.select(self._pause):
                key.data(key.fileobj)
            self._close_late()
        self._close_all(self._open.all())
        self.poller.close()
        for each in (self._listener, self._woken, self._waker):
            each.close()
        for thread in self._threads.values():
            thread.stop()

    def _pause_accepting(self) -> None:
        self.poller.unregister(self._listener)
        self._accepts = False

    def _next_request(self, connection: Connection) -> None:
        try:
            request = connection.incoming.next()
        except HeadTooLarge:
            self._refuse(connection, TOO_LARGE)
            return
        if request is None:
            self._watch(connection, selectors.EVENT_READ, self._readable)
            return
        parts = request.data.partition(b"\r\n")[0].split(b" ")
        if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
            self._refuse(connection, _MALFORMED)
        elif parts[0] not in (b"GET", b"HEAD"):
            self._refuse(connection, _METHOD)
        else:
            path = parts[1].partition(b"?")[0].decode("latin-1")
            self._ask(connection, path, with_body=parts[0] == b"GET")

    def _ask(self, connection: Connection, path: str, *, with_body: bool) -> None:
        thread = self._threads.get(path)
        if thread is None:
            self._refuse(connection, _UNKNOWN)
            return

        def answered(head: bytes, body: bytes) -> None:
            data = head + body if with_body else head
            self._done.put(lambda: self._answered(connection, thread, data))
            self.wake()

        if not thread.ask(answered):
            self._refuse(connection, _BUSY)
            return
        self._unwatch(connection)
        connection.is_busy = True

    def _finish(self, woken: socket.socket) -> None:
        woken.recv(4096)
        while not self._done.empty():
            self._done.get()()

    def _answered(self, connection: Connection, thread: _Thread, data: bytes) -> None:
        thread.ended()
        connection.is_busy, connection.persists = False, False
        connection.unsent = memoryview(data)
        self._begin_sending(connection)

    def _refuse(self, connection: Connection, text: bytes) -> None:
        self._last_words(connection, text)
        self._close_gently(connection)

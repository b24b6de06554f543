"""gunicorn's worker: one loop for connections, threads for complete requests.

The loop reads all connections and writes to slow clients; a thread gets a request when its last
byte is received, and is free when the answer is made. So a client that is silent or slow costs a
descriptor and a few bytes, never a thread, until its time-out. Connections of one address are
limited: one more closes the address's longest idle one.

A request with data of any length has a thread of another pool as soon as its head is there, which
reads its body (``web.streaming``). One more than that pool has threads is refused.

Answers are made in memory before they are sent; a part of a file (``web.file_parts``) may follow,
which the loop has the kernel send. TLS ends in the proxy in front. How connections are accepted,
read and written is ``web.loop``'s.
"""

from __future__ import annotations

import os
import resource
import selectors
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gunicorn import http
from gunicorn.errors import ConfigError
from gunicorn.workers.gthread import ThreadWorker

from web.connections import TOO_LARGE, TOO_MANY_STREAMS, Connection, Outgoing
from web.incoming import HeadTooLarge, Request
from web.loop import TICK_SECONDS, Loop
from web.streaming import Body

LINGER_SECONDS = 0.3
"""How long an idle connection is left open when the worker stops, for a request in transit."""

STREAM_SECONDS = 60.0
"""Time for a client to send 64 KiB more of a body of any length; see ``web.pace``."""

STREAMS = 32
"""Bodies of any length that one worker reads at a time; the Image API shares fewer among projects
(``api.image.data.shares``), so that who is refused is answered."""

PEER_SHARE = 0.5
"""The share of a worker's connections that one address may hold."""

turned_at: float | None = None
"""When the loop of this process last turned, by the monotonic clock; None: there is no loop."""

drain_seconds: float = 0.0
"""How long a worker that is asked to end still takes requests, if no other worker follows it."""

_SPARE_DESCRIPTORS = 512
#: connections that the kernel holds for a listener, at the most
_MOST_WAITING = 4096
#: the master kills workers after its grace; they end a little before
_SPARE_SECONDS = 1.0


class Worker(Loop, ThreadWorker):  # type: ignore[misc]
    """A worker with one loop and a pool of threads; it stops when all requests are answered."""

    stream_seconds = STREAM_SECONDS
    streams = STREAMS
    peer_share = PEER_SHARE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._begin_with(self.worker_connections, self.peer_share)
        self._streaming = 0
        self._leaves: float | None = None
        """When it stops taking connections, once it is asked to end."""
        self._end: float | None = None

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Raise ConfigError for settings that this worker doesn't support."""
        if cfg.is_ssl:
            raise ConfigError("TLS ends in a proxy in front: leave keyfile and certfile out.")

    def init_process(self) -> None:
        """Raise the limit of descriptors to all connections' need, then start.

        What gunicorn logs of requests is escaped as all that we log.
        """
        from common import log  # weighs some MiB that gunicorn's master doesn't need

        log.escape_output()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = self.worker_connections + _SPARE_DESCRIPTORS
        if soft != resource.RLIM_INFINITY and soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        self._stream_pool = ThreadPoolExecutor(self.streams, "stream")
        super().init_process()

    # --- the loop

    def run(self) -> None:
        """Serve until asked to stop and all requests are answered."""
        self.poller.register(
            self.method_queue.fileno(), selectors.EVENT_READ, self.method_queue.run_callbacks
        )
        self.set_accept_enabled(True)
        while self._goes_on():
            self.notify()
            _turn()
            self._dispatch()
            self._close_late()
        self._close_all(self._open.all())
        self.tpool.shutdown(wait=False)
        self._stream_pool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()

    def _goes_on(self) -> bool:
        now = time.monotonic()
        if self._leaves is None and not (self.alive and self.is_parent_alive()):
            self._leaves = now
            if drain_seconds and not self._is_followed():
                self._leaves += drain_seconds
                from common.process import health  # weighs what `common.log` does

                health.leave()
        if self._end is None:
            if self._leaves is None or now < self._leaves:
                self.set_accept_enabled(True)  # it may have been out of descriptors
                return True
            self._begin_end()
        assert self._end is not None
        return len(self._open) > 0 and now < self._end

    def _is_followed(self) -> bool:
        """Return whether the master listens on, for other workers: it reloads, or replaces one."""
        mine = {os.fstat(each.fileno()).st_ino for each in self.sockets}
        try:
            theirs = {one.stat().st_ino for one in Path(f"/proc/{self.ppid}/fd").iterdir()}
        except OSError:
            return False  # it has ended, or shows nothing
        return mine <= theirs

    def _begin_end(self) -> None:
        """Accept what has connected, and then nothing more; close idle connections soon."""
        self.alive = False
        self.set_accept_enabled(False)
        for each in self.sockets:
            self._accept_last(each)
        now = time.monotonic()
        asked = now if self._leaves is None else self._leaves - drain_seconds
        self._end = max(asked + self.cfg.graceful_timeout - _SPARE_SECONDS, now + LINGER_SECONDS)
        for connection in self._open.all():
            if not connection.is_busy and not connection.pending:
                connection.deadline = min(connection.deadline, now + LINGER_SECONDS)

    def _accept_last(self, listener: Any) -> None:
        """Accept the connections that wait, and close the listener: it would take more, which
        nobody would answer."""
        waiting = selectors.DefaultSelector()
        waiting.register(listener, selectors.EVENT_READ)
        for _ in range(_MOST_WAITING):
            if not waiting.select(0):
                break
            self.accept(listener)
        waiting.close()
        listener.close()

    @property
    def _pause(self) -> float:
        return TICK_SECONDS if self._end is None else LINGER_SECONDS / 3

    def _pause_accepting(self) -> None:
        self.set_accept_enabled(False)

    def _dispatch(self) -> None:
        for key, _ in self.poller.select(self._pause):
            key.data(key.fileobj)

    # --- requests

    def _next_request(self, connection: Connection) -> None:
        """Pass a complete request to a thread, or wait for the rest of it."""
        try:
            request = connection.incoming.next()
        except HeadTooLarge:
            self._last_words(connection, TOO_LARGE)
            self._close_gently(connection)
            return
        if request is None:
            if connection.incoming.expects_continue:
                connection.incoming.expects_continue = False
                self._last_words(connection, b"HTTP/1.1 100 Continue\r\n\r\n")
            self._watch(connection, selectors.EVENT_READ, self._readable)
            return
        if request.body is not None and self._streaming >= self.streams:
            self._last_words(connection, TOO_MANY_STREAMS)
            self._close_gently(connection)
            return
        self._begin(connection, request)

    def _begin(self, connection: Connection, request: Request) -> None:
        """Pass a request to a thread."""
        pool: Executor = self.tpool
        if request.body is not None:
            pool = self._stream_pool
            self._streaming += 1
        self._unwatch(connection)
        connection.is_busy = True
        connection.persists = not request.last
        connection.requests += 1
        future = pool.submit(self._answer, connection, request)
        future.add_done_callback(
            lambda done: self.method_queue.defer(self._answered, connection, request, done)
        )

    def _answer(self, connection: Connection, request: Request) -> bool:
        """Make the answer, in a thread; return whether the connection is left open."""
        connection.sock = Outgoing()
        parsed = None
        try:
            parser = http.get_parser(self.cfg, [request.data], connection.client)
            parser.req_count = connection.requests - 1
            parsed = next(parser)
            if request.body is not None:
                parsed.body = Body(connection.real, request.body, self.stream_seconds)
            if request.last or self._leaves is not None:
                parsed.force_close()  # and the answer says so
            persists = bool(self.handle_request(parsed, connection)) and connection.persists
        except (http.errors.NoMoreData, StopIteration) as error:
            self.log.debug("A request is not whole: %s", error)
            persists = False
        except http.errors.UnsupportedTransferCoding as error:
            # gunicorn would answer 501; what a client sent wrong is never an error of the server.
            connection.sock = Outgoing()
            bad = http.errors.InvalidHeader(f"Transfer-Encoding: {error.hdr}")
            self.handle_error(parsed, connection.sock, connection.client, bad)
            persists = False
        except Exception as error:  # noqa: BLE001 - gunicorn answers it and logs it
            connection.sock = Outgoing()
            self.handle_error(parsed, connection.sock, connection.client, error)
            persists = False
        connection.unsent, connection.file = memoryview(connection.sock.data), connection.sock.file
        connection.sock.file = None  # closed when it is sent, not with the next request
        self._send_now(connection)
        return persists

    def _answered(self, connection: Connection, request: Request, done: Future[bool]) -> None:
        """Continue with a connection whose request is answered."""
        connection.is_busy = False
        if request.body is not None:
            self._streaming -= 1
            connection.real.setblocking(False)
        answered = not done.cancelled() and done.exception() is None and done.result()
        connection.persists = connection.persists and answered
        self._begin_sending(connection)

    def _wait_for_next(self, connection: Connection) -> None:
        now = time.monotonic()
        kept = self.cfg.keepalive if self._end is None else LINGER_SECONDS
        seconds = kept if connection.incoming.is_empty else self.request_seconds
        connection.waits_since, connection.deadline = now, now + seconds
        self._next_request(connection)


def _turn() -> None:
    """Note that the loop turns."""
    global turned_at
    turned_at = time.monotonic()

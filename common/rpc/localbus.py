"""An in-process, event-driven driver for oslo.messaging: ``micronova-local://<bus name>``.

For the embedded cloud, where every service lives in one process. A message is handed to the
server's executor in the sender's thread: nothing polls and no thread waits for messages. A message
for which nobody listens yet is kept until somebody does, up to a bound.

Semantics of the rabbit driver that are kept: a topic's servers take turns, a named server has its
own queue, a fanout reaches every listener of the topic, messages are plain JSON (what a message
carries is encoded by the serializer before it comes here, so nothing is shared by reference).
"""

from __future__ import annotations

import collections
import itertools
import queue
import sys
import threading
from typing import Any

from common.rpc.messaging import driver_base, oslo_messaging

#: messages kept for a topic without a listener; older ones are dropped first
BACKLOG = 10_000


class _Incoming(driver_base.RpcIncomingMessage):  # type: ignore[misc]
    def __init__(self, ctxt: Any, message: Any, reply_queue: queue.SimpleQueue[Any] | None):
        super().__init__(ctxt, message)
        self._reply_queue = reply_queue
        #: the caller has given up waiting: as on RabbitMQ, the message has expired
        self.expired = False

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        if self._reply_queue is not None:
            self._reply_queue.put((reply, failure[1] if failure else None))

    def requeue(self) -> None:
        raise NotImplementedError("the dispatchers of this project never requeue")

    def heartbeat(self) -> None:
        """Do nothing: a caller in this process can't lose its callee."""


class _Listener(driver_base.Listener):  # type: ignore[misc]
    def __init__(self, bus: _Bus, topic: str, server: str | None) -> None:
        super().__init__(1, None)
        self._bus, self._topic, self._server = bus, topic, server

    def start(self, on_incoming_callback: Any) -> None:
        super().start(on_incoming_callback)
        self._bus.attach(self._topic, self._server, self)

    def stop(self) -> None:
        self._bus.detach(self._topic, self._server, self)
        super().stop()

    def cleanup(self) -> None:
        """Do nothing: the listener holds nothing."""


class _Bus:
    """Queues of one bus name. A key is (topic, server), server None for the shared queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[tuple[str, str | None], list[_Listener]] = {}
        self._waiting: dict[tuple[str, str | None], collections.deque[_Incoming]] = {}
        self._turn = itertools.count()

    def attach(self, topic: str, server: str | None, listener: _Listener) -> None:
        backlog: list[_Incoming] = []
        with self._lock:
            for key in ((topic, server), (topic, None)):
                self._listeners.setdefault(key, []).append(listener)
                backlog.extend(self._waiting.pop(key, ()))
        for incoming in backlog:
            _deliver(listener, incoming)

    def detach(self, topic: str, server: str | None, listener: _Listener) -> None:
        with self._lock:
            for key in ((topic, server), (topic, None)):
                if listener in self._listeners.get(key, ()):
                    self._listeners[key].remove(listener)

    def send(self, topic: str, server: str | None, incoming: _Incoming) -> None:
        key = (topic, server)
        with self._lock:
            listeners = self._listeners.get(key)
            if not listeners:
                waiting = self._waiting.setdefault(key, collections.deque(maxlen=BACKLOG))
                waiting.append(incoming)
                return
            listener = listeners[next(self._turn) % len(listeners)]
        _deliver(listener, incoming)

    def fanout(self, topic: str, ctxt: Any, message: Any) -> None:
        with self._lock:
            listeners = list(self._listeners.get((topic, None), ()))
        for listener in listeners:
            _deliver(listener, _Incoming(ctxt, message, None))


def _deliver(listener: _Listener, incoming: _Incoming) -> None:
    callback = listener.on_incoming_callback
    if callback is not None and not incoming.expired:
        callback([incoming])


_buses: dict[str, _Bus] = collections.defaultdict(_Bus)
_buses_lock = threading.Lock()


class LocalDriver(driver_base.BaseDriver):  # type: ignore[misc]
    """The driver object of oslo.messaging; every driver of one URL shares one bus."""

    #: senders and receivers stand still together
    in_process = True

    def __init__(
        self,
        conf: Any,
        url: Any,
        default_exchange: str | None = None,
        allowed_remote_exmods: Any = None,
    ) -> None:
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        with _buses_lock:
            self._bus = _buses[str(url)]

    def require_features(self, requeue: bool = False) -> None:
        """Accept everything: only notifications need requeue, and they have no listener here."""

    def send(
        self,
        target: Any,
        ctxt: Any,
        message: Any,
        wait_for_reply: bool | None = None,
        timeout: float | None = None,
        call_monitor_timeout: float | None = None,
        retry: int | None = None,
        transport_options: Any = None,
    ) -> Any:
        if target.fanout:
            self._bus.fanout(target.topic, ctxt, message)
            return None
        replies: queue.SimpleQueue[Any] | None = queue.SimpleQueue() if wait_for_reply else None
        incoming = _Incoming(ctxt, message, replies)
        self._bus.send(target.topic, target.server, incoming)
        if replies is None:
            return None
        try:
            return _wait(replies, target.topic, timeout)
        except oslo_messaging.MessagingTimeout:
            incoming.expired = True
            raise

    def send_notification(
        self, target: Any, ctxt: Any, message: Any, version: Any, retry: int | None = None
    ) -> None:
        self._bus.send(target.topic, None, _Incoming(ctxt, message, None))

    def listen(self, target: Any, batch_size: int, batch_timeout: float | None) -> _Listener:
        return _Listener(self._bus, target.topic, target.server)

    def listen_for_notifications(
        self, targets_and_priorities: Any, pool: Any, batch_size: int, batch_timeout: Any
    ) -> _Listener:
        raise oslo_messaging.UnsupportedVersion("notifications")

    def cleanup(self) -> None:
        """Do nothing: the bus lives as long as the process, as other transports may share it."""


def _wait(replies: queue.SimpleQueue[Any], topic: str, timeout: float | None) -> Any:
    try:
        reply, failure = replies.get(timeout=timeout)
    except queue.Empty:
        raise oslo_messaging.MessagingTimeout(f"No reply on topic {topic}") from None
    if failure is not None:
        # The traceback of the callee's frames would keep their objects alive.
        raise failure.with_traceback(sys.exc_info()[2])
    return reply

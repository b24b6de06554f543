"""What is changed in oslo.messaging's rabbit driver: replies, senders, and queues that expire.

* Replies go through a topic exchange of their own. The driver sends them through the broker's
  default exchange, which reaches every queue: who may answer could fill any queue with anything.
* A reply queue's name begins with the user's, so that nobody else needs to be allowed to read it.
* A listener is delivered as many messages ahead as it has threads, at the most: what waits in a
  process that is frozen waits until the broker closes its connection.
* No host of the URL is passed over before it was tried. Both the driver and kombu 5.6 switch to
  the next host where a listener finds its connection dead; of three hosts it came back to the
  first each time, as long as that was frozen (oslo.messaging's bug 2126768 has half of it).
* Each message names the user who sent it (``user_id``), which RabbitMQ checks. The context of a
  message that is taken names that user as ``sender``, whatever the message itself says.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import uuid
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote

from common.rpc import own_queues, sockets

#: the exchange of replies
REPLIES = "replies"
#: the key of a message's context with the sender's user
SENDER = "sender"
_MODULE = "oslo_messaging._drivers.impl_rabbit"

#: threads of the listener whose connection is being made
_threads: ContextVar[int | None] = ContextVar("threads", default=None)


@contextlib.contextmanager
def of_threads(count: int) -> Iterator[None]:
    """Have connections that are made now, to listen, deliver no more ahead than this."""
    token = _threads.set(count)
    try:
        yield
    finally:
        _threads.reset(token)


def reply_prefix(user: str) -> str:
    """Return what the names of a user's reply queues begin with; a number follows."""
    return f"reply_{quote(user, safe='')}_"


def is_rabbit(transport: Any) -> bool:
    """Return whether a transport's driver is the rabbit driver."""
    rabbit: Any = sys.modules.get(_MODULE)
    return rabbit is not None and isinstance(transport._driver, rabbit.RabbitDriver)


def prepare(transport: Any) -> None:
    """Change the driver of a transport, if it is the rabbit driver."""
    if not is_rabbit(transport):
        return
    driver = transport._driver
    _change(sys.modules[_MODULE])
    user = next((host.username for host in driver._url.hosts if host.username), "guest")
    driver._get_reply_queue_name = lambda: f"{reply_prefix(user)}{uuid.uuid4().hex}"


def _change(rabbit: Any) -> None:
    """Change the driver's classes; idempotent."""
    if hasattr(rabbit.Consumer, "expires_alone"):
        return

    class Consumer(rabbit.Consumer):  # type: ignore[misc]
        """A consumer whose queue expires if it is of one process."""

        expires_alone = True

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if self.queue_name in own_queues.NAMES:
                self.queue_arguments["x-expires"] = own_queues.EXPIRE_SECONDS * 1000

    class RabbitMessage(rabbit.RabbitMessage):  # type: ignore[misc]
        """A message whose context names the sender that the broker knows."""

        def __init__(self, raw_message: Any) -> None:
            super().__init__(raw_message)
            self[f"_context_{SENDER}"] = raw_message.properties.get("user_id")

    rabbit.Consumer, rabbit.RabbitMessage = Consumer, RabbitMessage
    # Of a message that was just parsed, and that nobody else uses: nothing need be copied.
    rabbit.rpc_amqp.RpcContext.to_dict = lambda context: context.values
    sockets.change()
    # In place: pools were given the class.
    connection = rabbit.Connection
    connection._set_current_channel = _naming_sender(connection._set_current_channel)
    connection._set_qos = _within_threads(connection._set_qos)
    connection.declare_direct_consumer = functools.partialmethod(_declare_replies, rabbit)
    connection.ensure = _trying_first(connection.ensure)
    connection.direct_send = functools.partialmethod(_reply, rabbit)
    client = rabbit.kombu.connection.Connection
    client._establish_connection = _noting_try(client._establish_connection)
    client.maybe_switch_next = _after_a_try(client.maybe_switch_next)


def _noting_try(original: Any) -> Any:
    """Return kombu's ``Connection._establish_connection``, which then notes that it was tried."""

    def establish(self: Any) -> Any:
        self.was_tried = True
        return original(self)

    return establish


def _after_a_try(original: Any) -> Any:
    """Return kombu's ``Connection.maybe_switch_next``, which then leaves tried hosts only."""

    def maybe_switch_next(self: Any) -> None:
        if not getattr(self, "was_tried", False):
            return
        # A close by the protocol waits for the answer of a broker that may be frozen.
        self.collect()
        original(self)
        self.was_tried = False

    return maybe_switch_next


def _naming_sender(original: Any) -> Any:
    """Return ``Connection._set_current_channel``, whose producer then names the sender."""

    def set_current_channel(self: Any, new_channel: Any) -> None:
        before = self.channel
        original(self, new_channel)
        if new_channel is not None and new_channel != before:
            publish = self._producer.publish
            # The user may be another one at another host of the URL.
            self._producer.publish = lambda *args, **options: publish(
                *args, user_id=self.connection.userid, **options
            )

    return set_current_channel


def _within_threads(original: Any) -> Any:
    """Return ``Connection._set_qos``, which then delivers no more ahead than there are threads."""

    def set_qos(self: Any, channel: Any) -> None:
        count = _threads.get()
        if count is not None and self.rabbit_qos_prefetch_count > count:
            # Of the connection: it is used again whenever it is made again.
            self.rabbit_qos_prefetch_count = count
        original(self, channel)

    return set_qos


def _trying_first(original: Any) -> Any:
    """Return ``Connection.ensure``, which makes a class for each message; only where the method
    fails now, as if it had failed there."""

    def ensure(self: Any, method: Any, *args: Any, **options: Any) -> None:
        if self.channel is None or self._initial_pid != os.getpid():
            original(self, method, *args, **options)
            return
        try:
            method()
        except Exception as error:  # noqa: BLE001 - raised again at once
            original(self, _failing_first(error, method), *args, **options)

    return ensure


def _failing_first(error: Exception, method: Any) -> Any:
    """Return a method that raises this at first."""
    errors = [error]

    def fail_or_do() -> None:
        if errors:
            raise errors.pop()
        method()

    return fail_or_do


def _declare_replies(self: Any, rabbit: Any, topic: str, callback: Any) -> None:
    """Do as ``Connection.declare_direct_consumer``, at the exchange of replies."""
    consumer = rabbit.Consumer(
        exchange_name=REPLIES,
        queue_name=topic,
        routing_key=topic,
        type="topic",
        durable=self.rabbit_transient_quorum_queue,
        exchange_auto_delete=False,
        queue_auto_delete=False,
        callback=callback,
        rabbit_ha_queues=self.rabbit_ha_queues,
        rabbit_queue_ttl=self.rabbit_transient_queues_ttl,
        enable_cancel_on_failover=self.enable_cancel_on_failover,
        rabbit_quorum_queue=self.rabbit_transient_quorum_queue,
        rabbit_quorum_queue_config=self.rabbit_quorum_queue_config,
    )
    self.declare_consumer(consumer)


def _reply(self: Any, rabbit: Any, msg_id: str, msg: Any) -> None:
    """Do as ``Connection.direct_send``, through the exchange of replies, which the caller made."""
    exchange = rabbit.kombu.entity.Exchange(
        name=REPLIES,
        type="topic",
        durable=self.rabbit_transient_quorum_queue,
        passive=True,
    )
    options = rabbit.oslo_messaging.TransportOptions(at_least_once=self.direct_mandatory_flag)
    self._ensure_publishing(
        self._publish_and_raises_on_missing_exchange,
        exchange,
        msg,
        routing_key=msg_id,
        transport_options=options,
    )

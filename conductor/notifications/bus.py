"""The notification bus: one message to one topic, and whether the bus took it.

oslo.messaging's Notifier logs a message that the bus doesn't take, and continues. Messages of the
outbox must not be lost like that: they are sent as its drivers send them, and errors are raised.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import kombu.exceptions
from kombu.transport import pyamqp
from oslo_config import cfg

from common import rpc
from common.rpc.messaging import oslo_messaging
from conductor.notifications.config import BUS_GROUP, GROUP, bus_url

_RABBIT = "oslo_messaging_rabbit"
#: {queue_type: oslo.messaging's options}
_QUEUES: Mapping[str, Mapping[str, bool]] = {
    "quorum": {"rabbit_quorum_queue": True, "amqp_durable_queues": True},
    "durable": {"rabbit_quorum_queue": False, "amqp_durable_queues": True},
    "classic": {"rabbit_quorum_queue": False, "amqp_durable_queues": False},
}
#: what a message's envelope is, by the driver
_VERSIONS: Mapping[str, float] = {"messagingv2": 2.0, "messaging": 1.0}
#: attempts to send a message at once; with 0, connecting would be tried for ever
_TRIES = 1
#: RabbitMQ's error for a queue declared with other arguments than it has
_CLASH = "inequivalent arg"


class BusError(Exception):
    """The bus did not confirm a message. It may have it nevertheless."""


@dataclass(frozen=True)
class Message:
    """A notification in its format."""

    message_id: str
    publisher: str
    event_type: str
    priority: str
    payload: Mapping[str, Any]
    at: datetime.datetime
    context: Mapping[str, Any]


class Bus:
    """Sends messages to topics of the exchange."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._exchange = conf[GROUP].control_exchange
        self._version = next(v for name, v in _VERSIONS.items() if name in conf[BUS_GROUP].driver)
        url = oslo_messaging.TransportURL.parse(own(conf), bus_url(conf))
        self._transport = oslo_messaging.get_notification_transport(url.conf, url)

    def send(self, topic: str, message: Message) -> None:
        """Return once the bus has taken the message.

        Raises BusError; any other exception is the message's fault.
        """
        target = oslo_messaging.Target(
            exchange=self._exchange, topic=f"{topic}.{message.priority.lower()}"
        )
        text = {
            "message_id": message.message_id,
            "publisher_id": message.publisher,
            "event_type": message.event_type,
            "priority": message.priority,
            "payload": message.payload,
            # As oslo.messaging's Notifier writes it.
            "timestamp": message.at.strftime("%Y-%m-%d %H:%M:%S.%f"),
        }
        try:
            self._transport._send_notification(
                target, dict(message.context), text, version=self._version, retry=_TRIES
            )
        except BUS_FAILURES as error:
            raise BusError(_reason(str(error))) from error

    def close(self) -> None:
        """Let connections go."""
        self._transport.cleanup()


#: what says that it is the bus, not the message
BUS_FAILURES: tuple[type[Exception], ...] = (
    oslo_messaging.MessagingException,
    kombu.exceptions.OperationalError,
    *pyamqp.Transport.connection_errors,
    *pyamqp.Transport.channel_errors,
    OSError,
)


def _reason(text: str) -> str:
    if _CLASH not in text:
        return text
    return (
        f"{text} — a consumer has declared it in another way: set [{GROUP}] queue_type "
        "to that of the consumer, or have exchange and queues deleted"
    )


def own(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Return a configuration of its own for the bus: queues as ``queue_type`` says.

    oslo.messaging reads these options by their groups, which the RPC bus has for itself.
    """
    found = cfg.ConfigOpts()
    rpc.register(found)
    found(args=[], project="micronova", default_config_files=[])
    for name, value in dict(conf[_RABBIT]).items():
        found.set_override(name, value, group=_RABBIT)
    for name, value in _QUEUES.get(conf[GROUP].queue_type or "", {}).items():
        found.set_override(name, value, group=_RABBIT)
    return found

"""The message bus: reachable, its queues replicated, and consumed by conductors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from oslo_config import cfg

from common.findings import Finding, Level
from common.messages.topics import CONDUCTOR_TOPIC, SCHEDULER_TOPIC

#: seconds that connecting may take
CONNECT_SECONDS = 5
#: messages of a queue from which on its service is behind
MANY_MESSAGES = 1000
#: RabbitMQ's own user, with a password that everybody knows
_GUEST = "guest"
#: queue → what waits without its service
_READ = {
    CONDUCTOR_TOPIC: "Requests are accepted by no API, and operations under way go no further.",
    SCHEDULER_TOPIC: "No server is placed.",
}


def bus(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield what is wrong with the bus that ``transport_url`` names; nothing if it is embedded."""
    from kombu import connection, exceptions

    from common import rpc

    rpc.register(conf)
    url = str(conf.transport_url or "")
    if not url.startswith("rabbit://") or not urlsplit(url).hostname:
        return
    make: Any = connection.Connection
    opened = make(f"amqp://{url.removeprefix('rabbit://')}", connect_timeout=CONNECT_SECONDS)
    refusals = (*opened.connection_errors, *opened.channel_errors)
    try:
        opened.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS)
        yield from _queues(opened)
    except (OSError, exceptions.KombuError, *refusals) as error:
        yield _broken(f"It doesn't answer, or refuses the login: {error}.")
        return
    finally:
        opened.release()
    if urlsplit(url).username == _GUEST:
        yield Finding(
            "bus_of_guest",
            Level.WARNING,
            "Message bus",
            "The services log in as guest, the user that each RabbitMQ begins with.",
            "Its password is known, and who is on the bus can have anything done.",
            (
                "rabbitmqctl add_user micronova <password> && "
                "rabbitmqctl set_permissions micronova '.*' '.*' '.*'",
                "# [DEFAULT] transport_url = rabbit://micronova:<password>@"
                f"{urlsplit(url).hostname}/",
            ),
        )
    options = conf.oslo_messaging_rabbit
    if not options.rabbit_quorum_queue:
        yield Finding(
            "queues_not_replicated",
            Level.WARNING,
            "Message bus",
            "[oslo_messaging_rabbit] rabbit_quorum_queue is false.",
            "With a broker's node its queues go, and what is in them.",
            ("# [oslo_messaging_rabbit] rabbit_quorum_queue = true",),
        )


def _queues(opened: Any) -> Iterator[Finding]:
    """Yield queues that no service reads, or not fast enough; not those that nobody made yet."""
    for name, why in _READ.items():
        try:
            seen = opened.channel().queue_declare(queue=name, passive=True)
        except opened.channel_errors:
            continue
        service = f"micronova-{name}"
        if not seen.consumer_count:
            yield Finding(
                "queue_unread",
                Level.BROKEN,
                "Message bus",
                f"Nobody reads the queue {name}, with {seen.message_count} messages.",
                why,
                (f"systemctl restart {service}",),
            )
        elif seen.message_count > MANY_MESSAGES:
            yield Finding(
                "queue_long",
                Level.WARNING,
                "Message bus",
                f"{seen.message_count} messages wait in the queue {name}.",
                "Requests time out before they are read. Another instance reads the same queue.",
                (f"systemctl restart {service}",),
            )


def _broken(what: str) -> Finding:
    why = "No service hears of another one."
    lines = ("systemctl restart rabbitmq-server",)
    return Finding("bus_unreachable", Level.BROKEN, "Message bus", what, why, lines)

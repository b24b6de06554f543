"""The message bus: reachable, its queues replicated, and consumed by conductors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from oslo_config import cfg

from common.findings import Finding, Level

#: seconds that connecting may take
CONNECT_SECONDS = 5


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
    except (OSError, exceptions.KombuError, *refusals) as error:
        yield _broken(f"It doesn't answer, or refuses the login: {error}.")
        return
    finally:
        opened.release()
    options = conf.oslo_messaging_rabbit
    if not options.rabbit_quorum_queue:
        yield Finding(
            "queues_not_replicated",
            Level.WARNING,
            "Message bus",
            "[oslo_messaging_rabbit] rabbit_quorum_queue is false.",
            "With a broker's node its queues go, and what is in them.",
        )


def _broken(what: str) -> Finding:
    why = "No service hears of another one."
    return Finding("bus_unreachable", Level.BROKEN, "Message bus", what, why)

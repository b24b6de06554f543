"""The message bus: reachable, its queues replicated, and consumed by conductors."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

from oslo_config import cfg

from common.counting import counted
from common.findings import Finding, Level
from common.messages.topics import CONDUCTOR_EVENTS_TOPIC, CONDUCTOR_TOPIC, SCHEDULER_TOPIC

#: seconds that connecting to a host may take
CONNECT_SECONDS = 5
#: messages of a queue from which on its service is behind
MANY_MESSAGES = 1000
#: RabbitMQ's own user, with a password that everybody knows
_GUEST = "guest"
#: the port of the services' driver, with TLS too
_PORT = 5672
#: queue → its service, and what waits without it
_READ = {
    CONDUCTOR_TOPIC: (
        "conductor",
        "Requests are accepted by no API, and operations under way go no further.",
    ),
    CONDUCTOR_EVENTS_TOPIC: ("conductor", "Nothing that agents report is recorded."),
    SCHEDULER_TOPIC: ("scheduler", "No server is placed."),
}


def bus(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield what is wrong with the bus that ``transport_url`` names; nothing if it is embedded."""
    from common import rpc

    rpc.register(conf)
    if not str(conf.transport_url or "").startswith("rabbit://"):
        return
    try:
        hosts = arguments(conf)
    except (ValueError, RuntimeError) as error:
        yield _broken(str(error))
        return
    if hosts:
        yield from _hosts(hosts)
        if not conf.oslo_messaging_rabbit.rabbit_quorum_queue:
            yield Finding(
                "queues_not_replicated",
                Level.WARNING,
                "Message bus",
                "[oslo_messaging_rabbit] rabbit_quorum_queue is false.",
                "When a node of the cluster is lost, so are its queues and their messages.",
                ("# [oslo_messaging_rabbit] rabbit_quorum_queue = true",),
            )


def arguments(conf: cfg.ConfigOpts) -> list[dict[str, Any]]:
    """Return kombu's arguments for each host of ``transport_url``, the same as the driver's.

    Raises ValueError for a URL without hosts and ports, RuntimeError for an unknown ssl_version.
    """
    from common.rpc.messaging import oslo_messaging

    try:
        url = oslo_messaging.TransportURL.parse(conf, conf.transport_url)
    except ValueError:
        # its text may have a part of the password
        raise ValueError(
            "The hosts of transport_url can't be read. In user and password other characters "
            "than letters and digits are written as % and two digits."
        ) from None
    return [
        {
            "hostname": host.hostname,
            "port": host.port or _PORT,
            "userid": host.username or _GUEST,
            "password": host.password or _GUEST,
            "virtual_host": url.virtual_host or "/",
            "ssl": _tls(conf.oslo_messaging_rabbit, host.hostname),
        }
        for host in url.hosts
        if host.hostname
    ]


def _tls(options: cfg.ConfigOpts.GroupAttr, hostname: str) -> dict[str, Any] | bool:
    """Return kombu's argument for TLS, see impl_rabbit of oslo.messaging. Raises RuntimeError."""
    # Here, as it loads kombu, and bus.py runs after common.rpc.messaging was imported.
    from oslo_messaging._drivers.impl_rabbit import Connection  # noqa: TID251

    if not options.ssl:
        return False
    version = options.ssl_version
    given = {
        "ssl_version": Connection.validate_ssl_version(version) if version else None,
        "keyfile": options.ssl_key_file,
        "certfile": options.ssl_cert_file,
        "ca_certs": options.ssl_ca_file,
    }
    found = {name: value for name, value in given.items() if value}
    if options.ssl_ca_file:
        found |= {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": hostname}
    return found or True


def _hosts(hosts: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield a problem for each host that doesn't answer, and the problems of the queues, which the
    first host that answers is asked for."""
    from kombu import connection, exceptions

    make: Any = connection.Connection
    found: list[Finding] | None = None
    silent: list[str] = []
    for host in hosts:
        opened = make(**host, connect_timeout=CONNECT_SECONDS)
        refusals = (*opened.connection_errors, *opened.channel_errors)
        try:
            opened.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS)
            found = list(_queues(opened)) if found is None else found
        except (OSError, exceptions.KombuError, *refusals) as error:
            silent.append(f"{host['hostname']}:{host['port']} ({error})")
        finally:
            opened.release()
    names = ", ".join(silent)
    if found is None:
        yield _broken(f"It doesn't answer, or refuses the login: {names}.")
        return
    if silent:
        yield Finding(
            "bus_host_unreachable",
            Level.WARNING,
            "Message bus",
            f"Not all hosts of transport_url answer, or take the login: {names}.",
            "The services use the others. With the majority of its nodes a cluster is lost.",
            ("systemctl restart rabbitmq-server",),
        )
    yield from found
    if any(host["userid"] == _GUEST for host in hosts):
        named = ",".join(
            f"micronova-conductor:<password>@{one['hostname']}:{one['port']}" for one in hosts
        )
        yield Finding(
            "bus_of_guest",
            Level.WARNING,
            "Message bus",
            "The services log in as guest, the user that each RabbitMQ begins with.",
            "Its password is known, and who is on the bus can have anything done.",
            (
                "micronova bus users",
                f"# conductor.conf: [DEFAULT] transport_url = rabbit://{named}/",
                "# and in the files of the other services that of their own user",
            ),
        )


def _queues(opened: Any) -> Iterator[Finding]:
    """Yield queues that no service reads, or not fast enough; not those that nobody made yet."""
    for name, (kind, why) in _READ.items():
        try:
            seen = opened.channel().queue_declare(queue=name, passive=True)
        except opened.channel_errors:
            continue
        service = f"micronova-{kind}"
        if not seen.consumer_count:
            yield Finding(
                "queue_unread",
                Level.BROKEN,
                "Message bus",
                f"Nobody reads the queue {name}, with {counted(seen.message_count, 'message')}.",
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

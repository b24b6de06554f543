"""The users of RabbitMQ that a configuration needs, one for each service, with their rights."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oslo_config import cfg

from common.errors import ConfigurationError
from common.rpc import permissions, senders
from common.rpc.permissions import Notifications, Permissions

#: under which notifications are sent
_PRIORITIES = ("info", "error")


@dataclass(frozen=True)
class BusUser:
    """A user, and what it may do."""

    role: str
    name: str
    permissions: Permissions
    vhost: str

    def commands(self) -> Iterator[list[str]]:
        """Yield the arguments of ``rabbitmqctl`` that make its rights these."""
        yield from permissions.commands(self.name, self.permissions, self.vhost)


def users(conf: cfg.ConfigOpts, workers: Sequence[str]) -> list[BusUser]:
    """Return the users of all services, with one for each compute worker named.

    Raises ConfigurationError where services use no RabbitMQ.
    """
    from common.rpc.messaging import oslo_messaging

    if not str(conf.transport_url or "").startswith("rabbit:"):
        raise ConfigurationError("transport_url names no RabbitMQ: rabbit://…")
    try:
        url = oslo_messaging.TransportURL.parse(conf, conf.transport_url)
    except ValueError:
        # its text may have a part of the password
        raise ConfigurationError("The hosts of transport_url can't be read.") from None
    vhost, notified = url.virtual_host or "/", _notifications(conf)
    named = [(role, name) for role in permissions.ROLES for name in _names(role, workers)]
    return [
        BusUser(
            role,
            senders.user_of(role, worker),
            permissions.of(
                *(role, worker, conf.control_exchange, notified),
                own_scheduler=conf.conductor.own_scheduler,
            ),
            vhost,
        )
        for role, worker in named
    ]


def lines(conf: cfg.ConfigOpts, workers: Sequence[str]) -> Iterator[str]:
    """Yield commands that make the users, and give them their rights; ``add_user`` asks for a
    password. Raises ConfigurationError."""
    for user in users(conf, workers):
        yield shlex.join(["rabbitmqctl", "add_user", user.name])
        yield from (shlex.join(["rabbitmqctl", *words]) for words in user.commands())


def _names(role: str, workers: Sequence[str]) -> Sequence[str]:
    return workers if role == senders.COMPUTE else ("",)


def _notifications(conf: cfg.ConfigOpts) -> Notifications | None:
    """Return what conductors send to the services' bus."""
    from conductor.notifications import config

    if not config.enabled(conf) or conf[config.BUS_GROUP].transport_url:
        return None
    options = conf[config.GROUP]
    topics = [*options.versioned_notifications_topics, *conf[config.BUS_GROUP].topics]
    queues = [f"{topic}.{one}" for topic in dict.fromkeys(topics) for one in _PRIORITIES]
    return Notifications(options.control_exchange, tuple(queues))

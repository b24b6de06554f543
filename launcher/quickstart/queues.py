"""Queues and exchanges that the services leave at a broker, and their removal.

Another application of the virtual host may use the same names, as Nova does. What was there before
the services is left alone, and so is what is in use once they have ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from common.errors import ConfigurationError
from common.rpc import permissions, senders
from launcher.doctor.bus import CONNECT_SECONDS, arguments
from launcher.quickstart import polling
from launcher.quickstart.polling import Pause

Control = Callable[..., str]
"""Runs rabbitmqctl with some arguments."""

_READERS_SECONDS = 5.0
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Found:
    """What a virtual host has."""

    queues: Mapping[str, int] = field(default_factory=dict)
    """{name: how many read it}"""
    exchanges: frozenset[str] = frozenset()

    def things(self) -> set[str]:
        """Return all as ``queue NAME`` and ``exchange NAME``."""
        return {f"queue {name}" for name in self.queues} | {
            f"exchange {name}" for name in self.exchanges
        }

    def without(self, things: Iterable[str]) -> Found:
        """Return the rest."""
        others = frozenset(things)
        return Found(
            {name: n for name, n in self.queues.items() if f"queue {name}" not in others},
            frozenset(name for name in self.exchanges if f"exchange {name}" not in others),
        )


def listed(control: Control, users: Iterable[str]) -> Found:
    """Return what the services with these users may have declared at this machine's broker."""
    patterns = [re.compile(_declares(user)) for user in users]
    quiet = ("--quiet", "--no-table-headers")
    queues: dict[str, int] = {}
    for line in control("list_queues", *quiet, "name", "consumers").splitlines():
        name, _, readers = line.rpartition("\t")
        if any(pattern.match(name) for pattern in patterns):
            queues[name] = int(readers)
    exchanges = control("list_exchanges", *quiet, "name").splitlines()
    ours = (name for name in exchanges if any(pattern.match(name) for pattern in patterns))
    return Found(queues, frozenset(ours))


def _declares(user: str) -> str:
    role, worker = senders.sender_of(user)
    return permissions.of(role or "", worker or "").configure


def asked_for(url: str, servers: Iterable[str]) -> Found:
    """Return what lasts, and what servers of these names read, at a broker that only a URL
    is known of; the rest expires there."""
    topics = permissions.lasting_queues()
    names = topics | {f"{topic}.{server}" for topic in topics for server in servers}
    queues: dict[str, int] = {}
    exchanges = set()
    with connected(url) as connection:
        for name in sorted(names):
            with _tried(connection) as channel:
                found = channel.queue_declare(name, passive=True)
                queues[name] = found.consumer_count
        for name in permissions.exchanges():
            with _tried(connection) as channel:
                channel.exchange_declare(name, "topic", passive=True)
                exchanges.add(name)
    return Found(queues, frozenset(exchanges))


def unread(
    look: Callable[[], Found], pause: Pause | None = None, seconds: float = _READERS_SECONDS
) -> Found:
    """Return what nobody reads, once the broker has noticed which services have ended."""
    found = Found()
    for found in polling.looks(look, seconds, _POLL_SECONDS, pause):
        if not any(found.queues.values()):
            break
    return found.without(f"queue {name}" for name, readers in found.queues.items() if readers)


def delete(url: str, queues: Iterable[str], exchanges: Iterable[str]) -> None:
    """Delete these, but for exchanges that still have something bound to them, and for what the
    URL's user may not delete."""
    with connected(url) as connection:
        for name in queues:
            with _tried(connection) as channel:
                channel.queue_delete(name)
        for name in exchanges:
            with _tried(connection) as channel:
                channel.exchange_delete(name, if_unused=True)


def port(control: Control) -> int:
    """Return the port where this machine's broker listens without TLS."""
    listeners = json.loads(control("status", "--quiet", "--formatter", "json"))["listeners"]
    return next((int(one["port"]) for one in listeners if one["protocol"] == "amqp"), 5672)


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """Give a connection to the first host that answers. Raises ConfigurationError for none, and
    where it breaks."""
    from kombu import connection, exceptions

    make: Any = connection.Connection
    said = "its URL names no host"
    for host in _hosts(url):
        opened = make(**host, connect_timeout=CONNECT_SECONDS)
        refusals = (*opened.connection_errors, *opened.channel_errors)
        try:
            opened.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS)
        except (OSError, exceptions.KombuError, *refusals) as error:
            opened.release()
            said = f"{host['hostname']}:{host['port']} ({error})"
            continue
        try:
            with opened:
                yield opened
        except opened.connection_errors as error:
            raise ConfigurationError(f"RabbitMQ: {error}") from None
        return
    raise ConfigurationError(f"RabbitMQ: {said}")


def _hosts(url: str) -> list[dict[str, Any]]:
    from common import rpc

    conf = cfg.ConfigOpts()
    rpc.register(conf)
    conf([])
    conf.set_override("transport_url", url)
    try:
        return arguments(conf)
    except ValueError as error:
        raise ConfigurationError(f"RabbitMQ: {error}") from None


@contextmanager
def _tried(connection: Any) -> Iterator[Any]:
    """Give a channel, which a refusal ends: the caller looks afterwards at what there is."""
    channel = connection.channel()
    try:
        yield channel
        channel.close()
    except connection.channel_errors:
        return

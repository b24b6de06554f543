"""What each service may do at RabbitMQ: from the topics that it listens on and sends to.

The names are those that oslo.messaging's rabbit driver declares, with the changes of
``common.rpc.rabbit``. A server on a topic reads the queues ``TOPIC``, ``TOPIC.SERVER`` and
``TOPIC_fanout_NUMBER``, the first two bound to the control exchange by their names, the last one
to the exchange ``TOPIC_fanout``. Who sends a message declares its exchange. Who calls reads a
queue ``reply_USER_NUMBER``, bound to the exchange of replies; who answers sends there.

RabbitMQ grants three rights by patterns of names: ``configure`` (to declare), ``write`` (to an
exchange; a queue, to bind it) and ``read`` (a queue; an exchange, to bind to it), and for a topic
exchange, patterns of the routing keys of messages and of bindings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from common.messages.topics import (
    ANNOUNCE_TOPIC,
    COMPUTE_TOPIC,
    CONDUCTOR_EVENTS_TOPIC,
    CONDUCTOR_TOPIC,
    HOST_FACTS_TOPIC,
    SCHEDULER_TOPIC,
    alive,
)
from common.rpc import rabbit, senders

#: the default of oslo.messaging's ``control_exchange``
CONTROL_EXCHANGE = "openstack"
#: a name of one server, in a pattern
_ANY = r"[^\s]+"
_NUMBER = "[0-9a-f]{32}"
#: matches no name
_NOTHING = "^$"


@dataclass(frozen=True)
class Role:
    """What one kind of service does on the bus, by topics."""

    serves: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    """To any one server of the topic."""
    sends_to: tuple[str, ...] = ()
    """To servers by their names."""
    broadcasts: tuple[str, ...] = ()
    calls: bool = True
    """Whether it waits for answers."""
    answers: bool = True
    notifies: bool = False
    """Whether it sends the notifications that are configured."""


ROLES: Mapping[str, Role] = {
    senders.API: Role(sends=(CONDUCTOR_TOPIC,), answers=False),
    senders.CONDUCTOR: Role(
        serves=(CONDUCTOR_TOPIC, CONDUCTOR_EVENTS_TOPIC, alive("nova-conductor")),
        sends=(SCHEDULER_TOPIC, CONDUCTOR_EVENTS_TOPIC),
        sends_to=(COMPUTE_TOPIC,),
        broadcasts=(HOST_FACTS_TOPIC, ANNOUNCE_TOPIC, SCHEDULER_TOPIC),
        notifies=True,
    ),
    senders.SCHEDULER: Role(
        serves=(SCHEDULER_TOPIC, HOST_FACTS_TOPIC, alive("nova-scheduler")),
        sends=(CONDUCTOR_EVENTS_TOPIC,),
        broadcasts=(ANNOUNCE_TOPIC,),
    ),
    senders.COMPUTE: Role(
        serves=(COMPUTE_TOPIC, ANNOUNCE_TOPIC),
        sends=(CONDUCTOR_EVENTS_TOPIC,),
        broadcasts=(HOST_FACTS_TOPIC,),
    ),
    senders.CONSOLE: Role(
        sends=(CONDUCTOR_EVENTS_TOPIC,), sends_to=(COMPUTE_TOPIC,), answers=False
    ),
}
"""{kind of service: what it does}; the others don't use the bus."""


@dataclass(frozen=True)
class Notifications:
    """Where notifications are sent: an exchange, and the queues that the driver declares."""

    exchange: str
    queues: tuple[str, ...]


@dataclass(frozen=True)
class Permissions:
    """Of one user: patterns of names, and by topic exchange those of routing keys."""

    configure: str
    write: str
    read: str
    topics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """{exchange: (keys of messages that it sends, of bindings that it makes)}"""


def of(
    role: str,
    worker: str = "",
    exchange: str = CONTROL_EXCHANGE,
    notifications: Notifications | None = None,
    *,
    own_scheduler: bool = False,
) -> Permissions:
    """Return what a service may do; ``worker`` is the name of a compute worker.

    With ``own_scheduler`` conductors have schedulers in their processes.
    """
    does = ROLES[role]
    if own_scheduler and role == senders.CONDUCTOR:
        inside = (SCHEDULER_TOPIC, HOST_FACTS_TOPIC, alive("nova-scheduler"))
        does = replace(does, serves=(*does.serves, *inside))
    server = re.escape(worker) if role == senders.COMPUTE else _ANY
    own = [name for topic in does.serves for name in _own(topic, server)]
    replies = re.escape(rabbit.reply_prefix(senders.user_of(role, worker))) + _NUMBER
    queues = [*own, *(_fanout_queue(topic) for topic in does.serves)]
    queues += [replies] if does.calls else []
    received, broadcast = _fanouts(does.serves), _fanouts(does.broadcasts)
    control, answers = re.escape(exchange), re.escape(rabbit.REPLIES)
    sent = [
        *(re.escape(topic) for topic in does.sends),
        *(rf"{re.escape(topic)}\.{_ANY}" for topic in does.sends_to),
        *(rf"{re.escape(topic)}\.{server}" for topic in does.serves),  # to itself
    ]
    notified = notifications if does.notifies else None
    others = (
        []
        if notified is None
        else [re.escape(one) for one in (notified.exchange, *notified.queues)]
    )
    return Permissions(
        configure=_pattern(queues, received, broadcast, [control], [answers] * does.calls, others),
        write=_pattern(queues, broadcast, [control], [answers] * does.answers, others),
        read=_pattern(queues, received, [control] * bool(own), [answers] * does.calls, others[:1]),
        topics={
            exchange: (_pattern(sent), _pattern(own)),
            rabbit.REPLIES: (
                _pattern([rf"reply_{_ANY}_{_NUMBER}"] * does.answers),
                _pattern([replies] * does.calls),
            ),
            **_of_notifications(notified),
        },
    )


def lasting_queues() -> frozenset[str]:
    """Return the queues of all services that never expire."""
    return frozenset(topic for does in ROLES.values() for topic in does.serves)


def exchanges(exchange: str = CONTROL_EXCHANGE) -> frozenset[str]:
    """Return the exchanges of all services, but for that of notifications."""
    topics = {topic for does in ROLES.values() for topic in (*does.serves, *does.broadcasts)}
    return frozenset({exchange, rabbit.REPLIES, *(f"{topic}_fanout" for topic in topics)})


def _own(topic: str, server: str) -> tuple[str, str]:
    return re.escape(topic), rf"{re.escape(topic)}\.{server}"


def _fanout_queue(topic: str) -> str:
    return f"{re.escape(topic)}_fanout_{_NUMBER}"


def _fanouts(topics: Iterable[str]) -> list[str]:
    return [f"{re.escape(topic)}_fanout" for topic in topics]


def _of_notifications(notified: Notifications | None) -> dict[str, tuple[str, str]]:
    if notified is None:
        return {}
    keys = _pattern([re.escape(one) for one in notified.queues])
    return {notified.exchange: (keys, keys)}


def _pattern(*parts: Sequence[str]) -> str:
    """Return a pattern of the names that match one of these."""
    found = sorted({one for part in parts for one in part})
    return f"^({'|'.join(found)})$" if found else _NOTHING


def commands(user: str, made: Permissions, vhost: str = "/") -> Iterator[list[str]]:
    """Yield the arguments of ``rabbitmqctl`` that give a user these permissions."""
    where = ["-p", vhost]
    yield ["set_permissions", *where, user, made.configure, made.write, made.read]
    for exchange, (write, read) in made.topics.items():
        yield ["set_topic_permissions", *where, user, exchange, write, read]

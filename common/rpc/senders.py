"""Who sent a message, as the broker vouches for it, and what its kind of service may ask.

RabbitMQ refuses a message that names another user than its connection's (``user_id``); so a
user that belongs to one service shows whose message it is. Users with other names than
``user_of`` gives, as a user that all services share, may ask what any of these services asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from common.errors import Forbidden
from common.messages.tenures import worker_of
from common.messages.topics import (
    ANNOUNCE_TOPIC,
    COMPUTE_TOPIC,
    CONDUCTOR_EVENTS_TOPIC,
    HOST_FACTS_TOPIC,
)

API, CONDUCTOR, SCHEDULER, COMPUTE, CONSOLE = ROLES = (
    *("api", "conductor", "scheduler", "compute", "console"),
)
"""The kinds of services that use the bus."""

_PREFIX = "micronova-"

#: topic → role → the methods that it asks, where these are not all
_METHODS: Mapping[str, Mapping[str, frozenset[str]]] = {
    CONDUCTOR_EVENTS_TOPIC: {
        # publish_aggregates: with a scheduler in its process
        CONDUCTOR: frozenset({"alive", "time", "publish_aggregates"}),
        SCHEDULER: frozenset({"alive", "time", "publish_aggregates"}),
        COMPUTE: frozenset(
            {
                *("claim_agents", "release_agents", "heartbeat", "report", "vm_states"),
                *("may_start", "may_undo", "owners", "time", "publish_aggregates"),
                *("health_checks", "report_health"),
            }
        ),
        CONSOLE: frozenset({"time", "ping", "use_console_token"}),
    },
    COMPUTE_TOPIC: {
        CONDUCTOR: frozenset({"execute", "introduce", "remove_group_rules", "ask"}),
        COMPUTE: frozenset({"tick"}),
        CONSOLE: frozenset({"ask"}),
    },
    HOST_FACTS_TOPIC: {
        CONDUCTOR: frozenset({"update_aggregates"}),
        COMPUTE: frozenset({"update_hosts"}),
    },
    ANNOUNCE_TOPIC: {
        CONDUCTOR: frozenset({"announce", "update_ratios"}),
        SCHEDULER: frozenset({"announce"}),
    },
}


class Sender(NamedTuple):
    """A service, by its user of the broker."""

    role: str | None
    """One of ``ROLES``; None: its user's name says nothing of it."""
    worker: str | None = None
    """Of a compute worker: its name."""


ANYBODY = Sender(None)


def user_of(role: str, worker: str = "") -> str:
    """Return the name of the broker's user of a service; each compute worker has its own."""
    return f"{_PREFIX}{role}-{worker}" if role == COMPUTE else f"{_PREFIX}{role}"


def sender_of(user: str | None) -> Sender:
    """Return whose user it is."""
    name = (user or "").removeprefix(_PREFIX)
    if not user or name == user:
        return ANYBODY
    role, _, worker = name.partition("-")
    if role == COMPUTE:
        return Sender(role, worker) if worker else ANYBODY
    return Sender(name) if name in ROLES else ANYBODY


def check(user: str | None, topic: str, method: str) -> None:
    """Raise Forbidden unless the sender's kind of service asks this on that topic."""
    table, role = _METHODS.get(topic), sender_of(user).role
    if table is None:
        return
    allowed = frozenset().union(*table.values()) if role is None else table.get(role, ())
    if method not in allowed:
        raise Forbidden(f"{user} may not ask for {method}.")


def check_worker(user: str | None, worker: str) -> None:
    """Raise Forbidden where a compute worker, by its name or address, sends something as another
    one."""
    sender = sender_of(user)
    if sender.role == COMPUTE and sender.worker != worker_of(worker):
        raise Forbidden(f"{user} may not report for worker {worker}.")

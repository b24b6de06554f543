"""What runs and waits on each compute host, as its agent last reported it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import codec
from common.errors import Invalid
from common.messages.queues import Queue
from common.messages.tenures import worker_of
from db import schema
from db.reads import keyset
from db.reads.hosts import node_health
from db.reads.servers.servers import COMPUTE

_HOSTS, _SERVICES = schema.hosts.c, schema.services.c


@dataclass(frozen=True, slots=True)
class HostQueues:
    """The queues of one compute host."""

    uuid: str
    host: str
    worker: str
    """The agent's process."""
    reported_at: datetime.datetime | None
    queues: tuple[Queue, ...] | None
    """None: its agent doesn't say."""
    forced_down: bool
    reached: bool
    """Whether the agent reaches its node."""
    trouble: str | None
    """Why the node can't be used, as its agent says; None: it can."""
    web_url: str | None = None
    """The node in the hypervisor's web interface; None or empty: not known."""

    @property
    def last_seen_at(self) -> datetime.datetime | None:
        """When the agent last reported."""
        return self.reported_at


def list_queues(
    connection: sa.Connection,
    limit: int | None,
    *,
    marker: str | None = None,
    host: str | None = None,
    name_part: str | None = None,
    unwell_since: datetime.datetime | None = None,
    up_since: datetime.datetime | None = None,
    down_since: datetime.datetime | None = None,
) -> list[HostQueues]:
    """Return a page of hosts with their queues, in the order of `db.reads.hosts.hosts.list_hosts`.

    `unwell_since`: only those that haven't reported since, or whose node can't be used, or not
    all of it read. `up_since`: only those that reported since, and whose agent reaches the node;
    `down_since`: only all others.
    One query, and one for the place of a `marker`, a host's UUID. Raises Invalid for an unknown
    one.
    """
    service = sa.and_(_SERVICES.host == _HOSTS.host, _SERVICES.binary == COMPUTE)
    statement = sa.select(
        *(_HOSTS.uuid, _HOSTS.host),
        *(_SERVICES.worker, _SERVICES.last_seen_at, _SERVICES.queues, _SERVICES.forced_down),
        *(node_health.REACHED.label("reached"), node_health.HEALTH.label("trouble")),
        _HOSTS.facts["web_url"].as_string().label("web_url"),
    ).select_from(schema.hosts.join(schema.services, service))
    if host is not None:
        statement = statement.where(_HOSTS.host == host)
    if name_part is not None:
        statement = statement.where(_HOSTS.host.contains(name_part, autoescape=True))
    if unwell_since is not None:
        well = sa.and_(node_health.is_well(unwell_since), node_health.HEALTH.is_(None))
        statement = statement.where(sa.not_(well))
    if up_since is not None:
        statement = statement.where(node_health.is_up(up_since))
    if down_since is not None:
        statement = statement.where(sa.not_(node_health.is_up(down_since)))
    page, order = keyset.Page(limit, marker), [keyset.Sort(_HOSTS.id)]
    try:
        rows = keyset.read(connection, statement, order, page, _HOSTS.uuid, visible=())
    except keyset.MarkerNotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
    return [
        HostQueues(
            *(row.uuid, row.host, worker_of(row.worker), row.last_seen_at, _queues(row.queues)),
            *(row.forced_down, row.reached, row.trouble, row.web_url),
        )
        for row in rows
    ]


def _queues(plain: Sequence[Any] | None) -> tuple[Queue, ...] | None:
    return None if plain is None else tuple(codec.load(Queue, one) for one in plain)

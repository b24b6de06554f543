"""How the agent of a compute host finds its node, as columns of `hosts`."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa

from common.messages.facts import WELL
from db import schema
from db.reads.servers.servers import COMPUTE

_FACTS, _SERVICES = schema.hosts.c.facts, schema.services.c

#: services, those of compute hosts with their nodes
SERVICES = schema.services.outerjoin(
    schema.hosts, sa.and_(schema.hosts.c.host == _SERVICES.host, _SERVICES.binary == COMPUTE)
)

#: whether the agent reaches the node; true for a service that has none
REACHED: sa.ColumnElement[bool] = sa.func.coalesce(_FACTS["online"].as_boolean(), sa.true())
_HEALTHY: sa.ColumnElement[bool] = sa.func.coalesce(_FACTS["healthy"].as_boolean(), sa.true())
#: why the node can't be used, in the agent's sentence; null: it can
TROUBLE: sa.ColumnElement[str | None] = sa.case((sa.not_(_HEALTHY), _FACTS["health"].as_string()))
#: the same, and of a node that can be used what can't be read of it; null: all is well
HEALTH: sa.ColumnElement[str | None] = sa.case(
    (sa.or_(sa.not_(_HEALTHY), _FACTS["health"].as_string() != WELL), _FACTS["health"].as_string())
)


def is_up(up_since: datetime.datetime) -> sa.ColumnElement[Any]:
    """Return whether a service is up: not forced down, last heartbeat after this time, node
    reached."""
    return sa.and_(
        sa.not_(_SERVICES.forced_down),
        sa.func.coalesce(_SERVICES.last_seen_at > up_since, sa.false()),
        REACHED,
    )


def is_well(up_since: datetime.datetime) -> sa.ColumnElement[Any]:
    """Return whether a host's service is up and its node healthy."""
    return sa.and_(is_up(up_since), _HEALTHY)

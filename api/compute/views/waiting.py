"""A server that waits for room on a host."""

from __future__ import annotations

from typing import Any

from common import clock
from common.more_hosts import More
from db.reads.ledger.waiting import Waiting


def waiting(one: Waiting, *, operator: bool) -> dict[str, Any]:
    """Return it as JSON; without `operator` without the host that is kept for it."""
    view = {
        "server_id": one.server_uuid,
        "project_id": one.project_id,
        "request_id": one.request_id,
        "together_with_request": one.gang is not None,
        "needs": dict(one.needs),
        "availability_zone": one.zone,
        "since": clock.iso_microseconds(one.since),
        "until": clock.iso_microseconds(one.until),
        "place": one.place,
        "of": one.of,
        "overtaken": one.overtaken,
        "is_tried_now": one.woken_at is not None,
    }
    return view | {"kept_host": one.kept_host} if operator else view


def more_hosts(one: More) -> dict[str, Any]:
    """Return what more hosts of a kind would do, as JSON."""
    return {
        "like_host": one.kind.like,
        "availability_zone": one.kind.zone,
        "capacity": dict(one.kind.capacity),
        "hosts_now": one.kind.hosts,
        "more_hosts": one.hosts,
        "takes": one.takes,
    }

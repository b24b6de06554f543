"""A server that waits for room on a host."""

from __future__ import annotations

from typing import Any

from common import clock
from common.more_hosts import More
from db.reads.ledger.waiting import Waiting
from db.reads.ledger.waiting_moves import WaitingMove
from db.reads.ledger.ways_to_room import Ways


def waiting(one: Waiting, ways: Ways, *, operator: bool) -> dict[str, Any]:
    """Return it as JSON; without `operator` without hosts."""
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
        "would_do": ways.would_do,
    }
    if not operator:
        return view
    near = ways.nearest
    return view | {
        "kept_host": one.kept_host,
        "nearest": None if near is None else {"host": near.host, "lacks": dict(near.lacks)},
        "one_more_host_like": ways.like_host,
    }


def move(one: WaitingMove) -> dict[str, Any]:
    """Return a move that waits as JSON."""
    return {
        "bulk_migration": one.bulk_migration,
        "action": one.action,
        "request_id": one.request_id,
        "server_id": one.server_uuid,
        "project_id": one.project_id,
        "host": one.source,
        "needs": dict(one.needs),
        "availability_zone": one.zone,
        "since": clock.iso_microseconds(one.since),
        "until": one.until,
        "reason": one.reason,
    }


def more_hosts(one: More) -> dict[str, Any]:
    """Return what more hosts of a kind would do, as JSON."""
    return {
        "like_host": one.kind.like,
        "availability_zone": one.kind.zone,
        "capacity": dict(one.kind.capacity),
        "traits": sorted(one.kind.traits),
        "hosts_now": one.kind.hosts,
        "more_hosts": one.hosts,
        "takes": one.takes,
    }

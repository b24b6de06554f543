"""Asks the scheduler whether a server's own host takes more of it: a larger flavor, or all of a
parked server."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from common import clock
from common.context import RequestContext
from common.messages.reports import Step
from common.messages.scheduling import Decision, RequestSpec
from conductor.cloud import Cloud
from conductor.servers.move.shaping import sizes
from conductor.servers.waiting.kept import kept_from
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.transactions import Transaction

#: Nova's words, which clients read
NO_VALID_HOST = "No valid host was found. No valid host found for {}"


def decide(
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    has: Mapping[str, Any],
    wants: Mapping[str, Any],
) -> Decision:
    """Return the scheduler's decision about the server's own host; nothing is claimed.

    What it has already is its own: only what it grows by, from a flavor to another, is asked for,
    and no image, which may be gone. Raises Unavailable.
    """
    wanted, held = sizes(wants), sizes(has)
    grows = {name: max(0, wanted[name] - held[name]) for name in wanted}
    same = _specs(wants) == _specs(has)
    if same and not any(grows.values()):
        return Decision(server.uuid, server.host, considered=1)
    kept = kept_from(cloud) if any(grows.values()) else {}
    if not any(grows.values()):
        # The host is asked about the extra specs; a request of nothing would be refused.
        grows["memory_mib"] = 1
    request = RequestSpec(
        server_uuid=server.uuid,
        project_id=server.project_id,
        user_id=server.user_id,
        **grows,
        image_properties=server.image_properties,
        extra_specs=_specs(wants),
        force_host=str(server.host),
        kept_hosts=tuple(sorted(kept.values())),
    )
    return cloud.scheduler.preview(ctxt, (request,))[0]


def record(
    connection: Transaction,
    operation: Operation,
    decision: Decision,
    started: datetime.datetime,
    name: str = "conductor_migrate_server",
) -> None:
    """Store the decision, and the step under Nova's name."""
    ledger.record_decision(connection, operation, decision)
    detail = {"host": decision.host, "considered": decision.considered}
    step = Step(name, 0, started, clock.utcnow(), "Success", detail=detail)
    ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])


def _specs(flavor: Mapping[str, Any]) -> dict[str, str]:
    return dict(flavor.get("extra_specs") or {})

"""Begins bulk migrations, and has them paused, resumed and cancelled: one transaction each."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence

from common import clock
from common.context import RequestContext
from common.errors import Conflict, NotFound
from common.messages.facts import HostFacts
from common.resources.bulk_migrations import Move, Steering
from common.resources.states import InternalAction, ResourceType
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.plans import BulkPlan, Place
from conductor.servers.bulk import decide
from conductor.servers.bulk.looking import look
from conductor.store import cloud_identity
from conductor.store.hosts import registry
from conductor.store.ledger import bulk_migrations as store
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.outbox import placement_outbox
from conductor.store.records import Operation
from conductor.store.transactions import Transaction

#: why a drained host is disabled
REASON = "being drained"


def drain(
    cloud: Cloud,
    ctxt: RequestContext,
    host: str,
    at_once: int,
    *,
    live_only: bool,
    wait_seconds: int = 0,
) -> Operation:
    """See ``ConductorRpc.drain``."""
    seconds = min(wait_seconds, int(cloud.conf.conductor.wait_most_seconds))

    def work(connection: Transaction) -> Operation:
        # Locked before the host's row, as in every transaction that changes a service.
        version = placement_outbox.begin(connection)
        facts, _ = registry.host(connection, host)
        if not facts.online or cloud.worker_of(connection, host) is None:
            raise Conflict(
                f"Host {host} can't be drained: it does not answer, and nothing can be moved off "
                "it. Its servers can only be evacuated.",
                host=host,
            )
        _require_none(connection, ResourceType.HOST, host)
        placement_outbox.add(connection, [host], version)
        registry.disable(connection, host, REASON)
        plan = planned(connection, facts, at_once, live_only=live_only)
        if seconds:
            until = clock.utcnow() + datetime.timedelta(seconds=seconds)
            plan = dataclasses.replace(plan, waits_until=until)
        return _insert(connection, cloud, ctxt, InternalAction.DRAIN, plan, host)

    return cloud.store.run(work)


def planned(
    connection: Transaction, facts: HostFacts, at_once: int, *, live_only: bool
) -> BulkPlan:
    """Return what a drain of a host would begin with."""
    where = Place(facts.host, facts.uuid, facts.cluster, facts.node)
    plan = BulkPlan(where, at_once=at_once, live_only=live_only)
    return decide.after(plan, look(connection, plan))


def rebalance(
    cloud: Cloud, ctxt: RequestContext, moves: Sequence[Move], at_once: int
) -> Operation:
    """See ``ConductorRpc.apply_rebalance``."""
    plan = BulkPlan(moves=tuple(moves), at_once=at_once, live_only=True)

    def work(connection: Transaction) -> Operation:
        _require_none(connection, ResourceType.CLOUD, cloud_id)
        return _insert(connection, cloud, ctxt, InternalAction.REBALANCE, plan, cloud_id)

    cloud_id = cloud.id
    return cloud.store.run(work)


def set_state(cloud: Cloud, number: int, steering: Steering) -> None:
    """See ``ConductorRpc.set_bulk_migration_state``."""

    def work(connection: Transaction) -> None:
        operation = store.get_locked(connection, number)
        if operation is None:
            if ledger.get(connection, number) is None:
                raise NotFound(f"Bulk migration {number} could not be found.")
            raise Conflict(f"Bulk migration {number} has ended.")
        plan = operation.planned(BulkPlan)
        if plan.steering == Steering.CANCEL:
            raise Conflict(f"Bulk migration {number} was cancelled; it ends with its moves.")
        values = {}
        if steering == Steering.GO:
            values["deadline"] = _deadline(cloud, plan)
        store.save(connection, operation, dataclasses.replace(plan, steering=steering), **values)
        leases.make_due(connection, number)

    cloud.store.run(work)
    cloud.wake()


def _require_none(connection: Transaction, kind: ResourceType, of: str) -> None:
    """Raise Conflict if another one is open. Two never begin at the same time."""
    cloud_identity.lock(connection)
    there = ledger.open_of(connection, of, kind)
    if there:
        raise Conflict(f"Bulk migration {there[0]} is under way there already.")


def _insert(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    action: InternalAction,
    plan: BulkPlan,
    of: str,
) -> Operation:
    kind = ResourceType.HOST if action == InternalAction.DRAIN else ResourceType.CLOUD
    project = str(ctxt.project_id or "")
    item = start.new(cloud, action, (kind, of), project, plan)
    begun = ledger.insert(connection, ctxt, [item])[0]
    if plan.waits_until is not None:
        ledger.save(connection, begun.id, deadline=_deadline(cloud, plan))
    return begun


def _deadline(cloud: Cloud, plan: BulkPlan) -> datetime.datetime:
    """Return when no further move begins: the usual time after what is waited for."""
    seconds = int(cloud.conf.conductor.bulk_migration_timeout_seconds)
    now = clock.utcnow()
    return max(now, plan.waits_until or now) + datetime.timedelta(seconds=seconds)

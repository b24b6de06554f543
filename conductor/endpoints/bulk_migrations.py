"""The RPC endpoint of migrations of many servers."""

from __future__ import annotations

from common.context import RequestContext
from common.log import logger
from common.resources.bulk_migrations import Move as BulkMove
from common.resources.bulk_migrations import Steering
from conductor.cloud import Cloud
from conductor.endpoints.hosts.aggregates import Notifier
from conductor.endpoints.whatif import WhatIfEndpoint
from conductor.engine.runner import Runner
from conductor.servers.bulk import begin_bulk
from conductor.store.records import Operation
from scheduler.messages import Rebalancing

LOG = logger(__name__)


class BulkMigrationEndpoint:
    """See ``conductor.rpc.BulkMigrationRpc``."""

    def __init__(self, cloud: Cloud, runner: Runner, notifier: Notifier) -> None:
        self._cloud, self._runner, self._notifier = cloud, runner, notifier
        self._whatif = WhatIfEndpoint(cloud)

    def drain(
        self,
        ctxt: RequestContext,
        host: str,
        at_once: int,
        *,
        live_only: bool,
        wait_seconds: int = 0,
    ) -> int:
        operation = begin_bulk.drain(
            self._cloud, ctxt, host, at_once, live_only=live_only, wait_seconds=wait_seconds
        )
        self._notifier.spread(ctxt)
        return self._begin(operation)

    def apply_rebalance(self, ctxt: RequestContext, limit: int, at_once: int) -> int:
        moves = proposed(self._whatif.rebalance(ctxt, limit))
        return self._begin(begin_bulk.rebalance(self._cloud, ctxt, moves, at_once))

    def set_bulk_migration_state(
        self, ctxt: RequestContext, number: int, steering: Steering
    ) -> None:
        begin_bulk.set_state(self._cloud, number, Steering(steering))

    def _begin(self, operation: Operation) -> int:
        LOG.info("Operation %d, %s, begins.", operation.id, operation.action)
        self._runner.submit(operation)
        return operation.id


def proposed(plan: Rebalancing) -> list[BulkMove]:
    """Return the moves of a plan, each with what it gains."""
    before = plan.score_before
    return [
        BulkMove(
            one.server_uuid,
            one.name,
            one.source,
            target=one.target,
            purpose=f"it takes {100 * one.gain / before:.1f} % off the score",
        )
        for one in plan.moves
    ]

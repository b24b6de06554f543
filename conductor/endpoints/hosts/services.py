"""The RPC endpoint of services."""

from __future__ import annotations

from typing import Any

from common.context import RequestContext
from common.messages.measurements import Measured, Period
from common.messages.tasks import TaskFacts
from conductor.cloud import Cloud
from conductor.endpoints.hosts.aggregates import Notifier
from conductor.engine import host_agent, measurements
from conductor.store.hosts import aggregates, registry
from conductor.store.ledger import group_news
from conductor.store.outbox import notification_payloads, placement_outbox
from conductor.store.transactions import Transaction


class ServiceEndpoint:
    """See ``conductor.rpc.ServiceRpc``."""

    def __init__(self, cloud: Cloud, notifier: Notifier) -> None:
        self._cloud = cloud
        self._notifier = notifier

    def ping(self, ctxt: RequestContext) -> str:
        self._cloud.store.answers()
        return self._cloud.name

    def update_service(
        self,
        ctxt: RequestContext,
        service_uuid: str,
        *,
        disabled: bool | None = None,
        reason: str | None = None,
        forced_down: bool | None = None,
    ) -> None:
        changes: dict[str, Any] = {}
        if disabled is not None:
            changes |= {"disabled": disabled, "disabled_reason": reason if disabled else None}
        if forced_down is not None:
            changes["forced_down"] = forced_down

        def work(connection: Transaction) -> None:
            placement_outbox.set_host(connection, service_uuid)
            host = placement_outbox.compute_host(connection, service_uuid)
            registry.update_service(connection, service_uuid, changes)
            if host is not None:
                lost = forced_down is not None
                note = group_news.note_hosts if lost else group_news.note_zones
                note(connection, [host])
            notification_payloads.service(connection, ctxt, service_uuid, "update")

        self._cloud.store.run(work)
        self._notifier.spread(ctxt)

    def measure_host(
        self, ctxt: RequestContext, host: str, period: Period, *, storage: str | None = None
    ) -> Measured:
        return measurements.of_host(self._cloud, ctxt, host, period, storage)

    def list_host_tasks(self, ctxt: RequestContext, host: str, limit: int) -> list[TaskFacts]:
        return host_agent.tasks(self._cloud, ctxt, host, limit)

    def delete_service(self, ctxt: RequestContext, service_uuid: str) -> None:
        def work(connection: Transaction) -> None:
            notification_payloads.service(connection, ctxt, service_uuid, "delete")
            aggregates.delete_service(connection, service_uuid)
            registry.delete_service(connection, service_uuid)

        self._cloud.store.run(work)
        self._notifier.spread(ctxt)

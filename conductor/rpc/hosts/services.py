"""Calls about services, including the conductor that answers."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext
from common.messages.measurements import Measured, Period
from common.messages.tasks import TaskFacts


class ServiceRpc(Protocol):
    """Services, including the conductor that answers."""

    def ping(self, ctxt: RequestContext) -> str:
        """Return the name of the conductor that answers. Raises Unavailable when none does."""

    def update_service(
        self,
        ctxt: RequestContext,
        service_uuid: str,
        *,
        disabled: bool | None = None,
        reason: str | None = None,
        forced_down: bool | None = None,
    ) -> None:
        """Enable, disable or force down a service; None: unchanged. Raises HostNotFound."""

    def measure_host(
        self, ctxt: RequestContext, host: str, period: Period, *, storage: str | None = None
    ) -> Measured:
        """Return measurements of a compute host, or of one of its storages.

        Raises HostNotFound, NotFound (it doesn't have the storage), Unavailable (its agent, or
        the cluster, doesn't answer).
        """

    def list_host_tasks(self, ctxt: RequestContext, host: str, limit: int) -> list[TaskFacts]:
        """Return the newest tasks of a compute host's node, those that run first.

        Raises HostNotFound, Unavailable (its agent, or the cluster, doesn't answer).
        """

    def delete_service(self, ctxt: RequestContext, service_uuid: str) -> None:
        """Delete a service. Raises HostNotFound; Conflict while servers are on its host."""

"""The RPC endpoint of quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from common.context import RequestContext
from common.errors import Invalid
from conductor.cloud import Cloud
from conductor.store.quotas import network_quotas, quotas
from conductor.store.servers import server_groups
from conductor.store.transactions import Transaction


class QuotaEndpoint:
    """See ``conductor.rpc.QuotaRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def set_quota(
        self, ctxt: RequestContext, project_id: str, limits: Mapping[str, int], *, force: bool
    ) -> None:
        def work(connection: Transaction) -> None:
            quotas.lock(connection, project_id)
            if not force:
                _require_unused(connection, project_id, limits)
            quotas.set_limits(connection, project_id, limits)

        self._cloud.store.run(work)

    def set_quota_class(
        self, ctxt: RequestContext, class_name: str, limits: Mapping[str, int]
    ) -> None:
        self._cloud.store.run(lambda c: quotas.set_class_limits(c, class_name, limits))

    def reset_quota(self, ctxt: RequestContext, project_id: str, resources: Sequence[str]) -> None:
        self._cloud.store.run(lambda c: quotas.delete_limits(c, project_id, resources))


def _require_unused(connection: Transaction, project_id: str, wanted: Mapping[str, int]) -> None:
    """Raise Invalid, in Nova's words or Neutron's, for a limit below what is used."""
    used = quotas.usage(connection, project_id)
    of_networks = network_quotas.usage(connection, project_id)
    if "server_groups" in wanted:
        used["server_groups"] = server_groups.count(connection, project_id)
    for resource, limit in wanted.items():
        there = {**used, **of_networks}.get(resource, 0)
        if 0 <= limit < there:
            counted = "already used" if resource in of_networks else "already used and reserved"
            end = "" if resource in of_networks else "."
            raise Invalid(
                f"Quota limit {limit} for {resource} must be greater than or equal to {counted} "
                f"{there}{end}"
            )

"""The RPC endpoint of quotas."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Invalid
from conductor.cloud import Cloud
from conductor.store import quotas, server_groups
from conductor.store.transactions import Transaction


class QuotaEndpoint:
    """See ``conductor.rpc_api.QuotaRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def set_quota(
        self, ctxt: RequestContext, project_id: str, limits: dict[str, int], force: bool
    ) -> None:
        """See ``ConductorClient.set_quota``."""

        def work(connection: Transaction) -> None:
            quotas.lock(connection, project_id)
            used = {} if force else quotas.usage(connection, project_id)
            if not force and "server_groups" in limits:
                used["server_groups"] = server_groups.count(connection, project_id)
            for resource, limit in limits.items():
                if 0 <= limit < used.get(resource, 0):
                    raise Invalid(
                        f"Quota limit {limit} for {resource} must be greater than or equal to "
                        f"already used and reserved {used[resource]}."
                    )
            quotas.set_limits(connection, project_id, limits)

        self._cloud.store.run(work)

    def set_quota_class(
        self, ctxt: RequestContext, class_name: str, limits: dict[str, int]
    ) -> None:
        """See ``ConductorClient.set_quota_class``."""
        self._cloud.store.run(lambda c: quotas.set_class_limits(c, class_name, limits))

    def reset_quota(self, ctxt: RequestContext, project_id: str, resources: list[str]) -> None:
        """See ``ConductorClient.reset_quota``."""
        self._cloud.store.run(lambda c: quotas.delete_limits(c, project_id, resources))

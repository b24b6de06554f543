"""Server groups: the API's requests. ``store.servers.server_groups`` enforces their policies."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import MicronovaError, QuotaExceeded
from common.log import logger
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.store.outbox import notification_payloads
from conductor.store.quotas import quotas
from conductor.store.servers import server_groups
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class ServerGroupEndpoint:
    """See ``conductor.rpc.ServerGroupRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_server_group(self, ctxt: RequestContext, group: NewServerGroup) -> str:
        def work(connection: Transaction) -> str:
            quotas.lock(connection, group.project_id)
            allowed = quotas.limits(connection, group.project_id, self._cloud.quota)
            limit = allowed["server_groups"]
            used = server_groups.count(connection, group.project_id)
            if 0 <= limit <= used:
                raise QuotaExceeded(
                    "Quota exceeded, too many server groups.",
                    resource="server_groups",
                    limit=limit,
                    used=used,
                    requested=1,
                )
            made = server_groups.create(connection, group)
            notification_payloads.server_group(connection, ctxt, made, "create")
            return made

        return self._cloud.store.run(work)

    def delete_server_group(self, ctxt: RequestContext, group_uuid: str) -> None:
        def work(connection: Transaction) -> dict[str, str]:
            workers = self._workers(connection, group_uuid)
            notification_payloads.server_group(connection, ctxt, group_uuid, "delete")
            server_groups.delete(connection, group_uuid, scope(ctxt))
            return workers

        for cluster, worker in self._cloud.store.run(work).items():
            try:
                self._cloud.compute.remove_group_rules(
                    ctxt, worker, cluster, self._cloud.id, group_uuid
                )
            except MicronovaError as error:
                # The group is deleted; the audit updates the cluster.
                LOG.warning(
                    "Cluster %s: the rules of deleted server group %s were not removed: %s",
                    *(cluster, group_uuid, error.message),
                )

    def _workers(self, connection: Transaction, uuid: str) -> dict[str, str]:
        """Return cluster → one of its workers, for clusters that may have a rule of the group."""
        if not server_groups.strict(connection, [uuid]):
            return {}
        found: dict[str, str] = {}
        for cluster, host in server_groups.hosts(connection, uuid):
            worker = None if cluster in found else self._cloud.worker_of(connection, host)
            if worker is not None:
                found[cluster] = worker
        return found

"""The RPC endpoint of networks and subnets of projects. The API has asked its policy."""

from __future__ import annotations

from typing import Any

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.messages import NewNetwork, NewSubnet
from conductor.store import project_networks, project_subnets, segments
from conductor.store.transactions import Transaction


class NetworkEndpoint:
    """See ``conductor.rpc_api.NetworkRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._ranges = tuple(map(segments.parse, cloud.conf.networks.tenant_vlans))

    def create_networks(self, ctxt: RequestContext, networks: list[NewNetwork]) -> list[str]:
        """See ``ConductorClient.create_networks``."""

        def work(connection: Transaction) -> list[str]:
            self._take_quota(connection, "network", [one.project_id for one in networks])
            return project_networks.create(connection, networks, self._ranges)

        return self._cloud.store.run(work)

    def update_network(self, ctxt: RequestContext, network_id: str, asked: dict[str, Any]) -> None:
        """See ``ConductorClient.update_network``."""
        self._cloud.store.run(lambda c: project_networks.change(c, network_id, asked))

    def delete_network(self, ctxt: RequestContext, network_id: str) -> None:
        """See ``ConductorClient.delete_network``."""
        self._cloud.store.run(lambda c: project_networks.delete(c, network_id))

    def create_subnets(self, ctxt: RequestContext, subnets: list[NewSubnet]) -> list[str]:
        """See ``ConductorClient.create_subnets``."""

        def work(connection: Transaction) -> list[str]:
            self._take_quota(connection, "subnet", [one.project_id for one in subnets])
            return project_subnets.create(connection, subnets)

        return self._cloud.store.run(work)

    def update_subnet(self, ctxt: RequestContext, subnet_id: str, asked: dict[str, Any]) -> None:
        """See ``ConductorClient.update_subnet``."""
        self._cloud.store.run(lambda c: project_subnets.change(c, subnet_id, asked))

    def delete_subnet(self, ctxt: RequestContext, subnet_id: str) -> None:
        """See ``ConductorClient.delete_subnet``."""
        self._cloud.store.run(lambda c: project_subnets.delete(c, subnet_id))

    def _take_quota(self, connection: Transaction, kind: str, owners: list[str]) -> None:
        limit = self._cloud.conf.quota[f"{kind}s"]
        project_networks.take_quota(connection, kind, owners, limit)

"""The RPC endpoint of networks and subnets of projects. The API has asked its policy."""

from __future__ import annotations

from typing import Any

from common.context import RequestContext
from common.resources import quotas as limits
from conductor.cloud import Cloud
from conductor.engine.settling import Settling
from conductor.networks import make_vnet, remove_vnet
from conductor.rpc.networks.networks import NewNetwork, NewShare, NewSubnet
from conductor.servers.auto_network import AutoNetwork
from conductor.store.networks import (
    auto_networks,
    network_shares,
    project_networks,
    project_subnets,
    revisions,
)
from conductor.store.networks.filtering import port_security
from conductor.store.networks.pools import Within
from conductor.store.quotas import network_quotas
from conductor.store.transactions import Transaction


class NetworkEndpoint:
    """See ``conductor.rpc.NetworkRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._auto = AutoNetwork(cloud)
        self._settling = Settling(cloud)

    def create_networks(self, ctxt: RequestContext, networks: list[NewNetwork]) -> list[str]:
        def work(connection: Transaction, within: Within) -> list[str]:
            self._take_quota(connection, "network", [one.project_id for one in networks])
            if any(one.port_security for one in networks):
                why_not = self._cloud.filtering.why_not(connection)
                port_security.require_filtering(True, why_not)
            segments = (self._auto.ranges, self._auto.vnis)
            made = project_networks.create(connection, networks, *segments, within)
            pairs = zip(made, networks, strict=True)
            fixed = {network_id for network_id, new in pairs if new.vlan is not None}
            make_vnet.begin_all(connection, self._cloud, ctxt, made, fixed)
            return made

        made = self._settling.run(work)
        self._cloud.wake()
        return made

    def update_network(self, ctxt: RequestContext, network_id: str, asked: dict[str, Any]) -> None:
        security = asked.get("port_security")

        def work(connection: Transaction) -> None:
            why_not = self._cloud.filtering.why_not(connection) if security else ""
            port_security.require_filtering(security, why_not)
            revisions.require_network(connection, ctxt, network_id)
            project_networks.change(connection, network_id, asked)

        self._cloud.store.run(work)

    def delete_network(self, ctxt: RequestContext, network_id: str) -> None:
        def work(connection: Transaction) -> None:
            revisions.require_network(connection, ctxt, network_id)
            project_networks.delete(connection, network_id)
            remove_vnet.begin_all(connection, self._cloud, network_id)

        self._cloud.store.run(work)
        self._cloud.wake()

    def create_subnets(self, ctxt: RequestContext, subnets: list[NewSubnet]) -> list[str]:
        def work(connection: Transaction) -> list[str]:
            self._take_quota(connection, "subnet", [one.project_id for one in subnets])
            return project_subnets.create(connection, subnets)

        return self._cloud.store.run(work)

    def update_subnet(self, ctxt: RequestContext, subnet_id: str, asked: dict[str, Any]) -> None:
        def work(connection: Transaction) -> None:
            revisions.require_subnet(connection, ctxt, subnet_id)
            project_subnets.change(connection, subnet_id, asked)

        self._cloud.store.run(work)

    def delete_subnet(self, ctxt: RequestContext, subnet_id: str) -> None:
        def work(connection: Transaction) -> None:
            revisions.require_subnet(connection, ctxt, subnet_id)
            project_subnets.delete(connection, subnet_id)

        self._cloud.store.run(work)

    def create_network_shares(self, ctxt: RequestContext, shares: list[NewShare]) -> list[str]:
        def work(connection: Transaction) -> list[str]:
            self._take_quota(connection, "rbac_policy", [one.project_id for one in shares])
            return network_shares.create(connection, shares)

        return self._cloud.store.run(work)

    def update_network_share(self, ctxt: RequestContext, share_id: str, target: str) -> None:
        self._cloud.store.run(lambda c: network_shares.change(c, share_id, target))

    def delete_network_share(self, ctxt: RequestContext, share_id: str) -> None:
        self._cloud.store.run(lambda c: network_shares.delete(c, share_id))

    def auto_network(self, ctxt: RequestContext, project_id: str, *, dry_run: bool) -> str:
        found = self._settling.run(
            lambda c, within: self._auto.topology(c, ctxt, project_id, within, dry_run=dry_run)
        )
        self._cloud.wake()
        return found

    def delete_auto_network(self, ctxt: RequestContext, project_id: str) -> None:
        def work(connection: Transaction) -> None:
            deleted = auto_networks.delete(connection, project_id)
            if deleted is not None:
                remove_vnet.begin_all(connection, self._cloud, deleted)

        self._cloud.store.run(work)
        self._cloud.wake()

    def _take_quota(self, connection: Transaction, kind: str, owners: list[str]) -> None:
        network_quotas.take(connection, kind, owners, limits.of_networks(self._cloud.conf))

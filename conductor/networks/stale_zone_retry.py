"""Gives clusters that have a zone by now the vnets of networks that were made before."""

from __future__ import annotations

from common.context import internal
from common.log import logger
from common.resources import vnets as ranges
from conductor.cloud import Cloud
from conductor.networks import make_vnet
from conductor.store.networks import project_networks, vnets
from conductor.store.transactions import Transaction

LOG = logger(__name__)

NAME = "late_zones"
SECONDS = 60.0


class StaleZoneRetry:
    """Looks for clusters whose zone of ``[networks] tenant_vnets`` lacks networks' vnets."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._ranges = ranges.parse_all(cloud.conf.networks.tenant_vnets)

    def look(self) -> None:
        """Begin to make them. Two queries, and one more for each zone of each cluster."""
        if self._ranges:
            self._cloud.store.run(self._begin)
            self._cloud.wake()

    def _begin(self, connection: Transaction) -> None:
        for one in vnets.lacking(connection, self._ranges):
            # Of a network that is deleted at the same time none is made any more.
            there = project_networks.is_there(connection, one.network_id)
            if there and vnets.get(connection, one.network_id, one.cluster) is None:
                vnets.insert(connection, [one])
                make_vnet.begin(connection, self._cloud, internal(), one)
                LOG.info("Network %s gets a vnet in cluster %s.", one.network_id, one.cluster)

"""Storages that take disks, as hosts see them, and what volumes were promised of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common import codec
from common.messages.facts import StorageFacts
from db.schema import hosts, services, volumes

_COMPUTE = "nova-compute"


@dataclass(frozen=True)
class Backend:
    """A storage on a host whose node answers; sizes in GiB."""

    host: str
    cluster: str
    node: str
    zone: str
    storage: StorageFacts

    @property
    def pool(self) -> tuple[str, str, str]:
        """What it is one of: cluster, storage, and the node of one that isn't shared."""
        return (self.cluster, self.storage.name, "" if self.storage.shared else self.node)


def read(connection: sa.Connection) -> list[Backend]:
    """Return every storage for disks on every host whose node answers, by host and name."""
    facts = hosts.c.facts
    of_host = (services.c.host == hosts.c.host) & (services.c.binary == _COMPUTE)
    query = (
        sa.select(
            hosts.c.host,
            hosts.c.cluster,
            hosts.c.node,
            services.c.aggregate_zone,
            services.c.availability_zone,
            facts["storages"],
            facts["online"],
            facts["availability_zone"],
        )
        .select_from(hosts.outerjoin(services, of_host))
        .order_by(hosts.c.host)
    )
    found = []
    for host, cluster, node, aggregate, zone, storages, online, fact in connection.execute(query):
        if online is False:
            continue
        loaded: Sequence[StorageFacts] = [codec.load(StorageFacts, one) for one in storages or ()]
        for one in sorted(loaded, key=lambda each: each.name):
            if one.active and "images" in one.content:
                where = str(aggregate or zone or fact or "")
                found.append(Backend(host, cluster, node, where, one))
    return found


def promised(connection: sa.Connection) -> dict[tuple[str, str, str], int]:
    """Return how many GiB volumes have of each pool; see ``Backend.pool``."""
    node = sa.case((volumes.c.shared, ""), else_=volumes.c.node)
    query = (
        sa.select(volumes.c.cluster, volumes.c.storage, node, sa.func.sum(volumes.c.size_gib))
        .where(volumes.c.vmid.is_not(None))
        .group_by(volumes.c.cluster, volumes.c.storage, node)
    )
    return {
        (cluster, storage, where): int(gib)
        for cluster, storage, where, gib in connection.execute(query)
    }

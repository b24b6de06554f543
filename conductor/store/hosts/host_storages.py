"""The storages of hosts, as their agents reported them last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common import codec
from common.messages.facts import StorageFacts
from db.schema import hosts


@dataclass(frozen=True)
class HostStorages:
    """A host whose node answers, and its storages."""

    host: str
    cluster: str
    node: str
    storages: Sequence[StorageFacts]


def read(connection: sa.Connection, cluster: str | None = None) -> list[HostStorages]:
    """Return the hosts whose nodes answer, with their storages; of one cluster, or of all."""
    facts = hosts.c.facts
    query = sa.select(
        hosts.c.host, hosts.c.cluster, hosts.c.node, facts["storages"], facts["online"]
    )
    if cluster is not None:
        query = query.where(hosts.c.cluster == cluster)
    return [
        HostStorages(host, name, node, [codec.load(StorageFacts, one) for one in storages or ()])
        for host, name, node, storages, online in connection.execute(query)
        if online is not False
    ]

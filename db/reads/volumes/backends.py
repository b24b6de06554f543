"""Storages that take disks, as hosts see them, and what volumes were promised of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import codec
from common.messages.facts import StorageFacts
from db.schema import hosts, services, volume_snapshots, volumes

_COMPUTE = "nova-compute"


@dataclass(frozen=True)
class Backend:
    """A storage on a host whose node answers; sizes in GiB."""

    host: str
    cluster: str
    node: str
    zone: str
    storage: StorageFacts
    disabled: bool = False
    """Whether no new volumes may be on the host."""

    @property
    def pool(self) -> tuple[str, str, str]:
        """The pool that it belongs to: cluster, storage, and the node if it isn't shared."""
        return (self.cluster, self.storage.name, "" if self.storage.shared else self.node)

    @property
    def capabilities(self) -> dict[str, Any]:
        """What Cinder's drivers report, by their names: types ask for it in extra specs."""
        return {
            "volume_backend_name": self.storage.name,
            "storage_protocol": self.storage.type,
            "total_capacity_gb": self.storage.total_gib,
            "free_capacity_gb": self.storage.available_gib,
            "vendor_name": "Proxmox VE",
            "multiattach": False,
            "thin_provisioning_support": True,
            "QoS_support": False,
            "backend_state": "up",
        }


def read(connection: sa.Connection, content: str = "images") -> list[Backend]:
    """Return every storage on every host whose node answers, by host and name.

    ``content``: what it takes; disks, or backups.
    """
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
            facts["online"].as_boolean(),
            facts["availability_zone"],
            services.c.volumes_disabled,
        )
        .select_from(hosts.outerjoin(services, of_host))
        .order_by(hosts.c.host)
    )
    found = []
    for row in connection.execute(query):
        host, cluster, node, aggregate, zone, storages, online, fact, disabled = row
        if online is False:
            continue
        loaded: Sequence[StorageFacts] = [codec.load(StorageFacts, one) for one in storages or ()]
        for one in sorted(loaded, key=lambda each: each.name):
            if one.active and content in one.content:
                where = str(aggregate or zone or fact or "")
                found.append(Backend(host, cluster, node, where, one, bool(disabled)))
    return found


def promised(connection: sa.Connection) -> dict[tuple[str, str, str], int]:
    """Return how many GiB volumes, and snapshots that are copies, have of each pool.

    A volume that is moved to another one has them of both. See ``Backend.pool``.
    """
    found: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    one = volumes.c
    query = sa.union_all(
        *(
            _sums(table.c, table.c.storage, table.c.shared)
            for table in (volumes, volume_snapshots)
        ),
        _sums(one, one.new_storage, one.new_shared),
    )
    for cluster, storage, where, gib in connection.execute(query):
        found[cluster, storage, where] += int(gib)
    return dict(found)


def _sums(one: Any, storage: sa.Column[Any], shared: sa.Column[Any]) -> sa.Select[Any]:
    """Select what rows that have a holder have of each of these storages."""
    node = sa.case((shared, ""), else_=one.node)
    return (
        sa.select(one.cluster, storage, node, sa.func.sum(one.size_gib))
        .where(one.vmid.is_not(None), storage.is_not(None))
        .group_by(one.cluster, storage, node)
    )

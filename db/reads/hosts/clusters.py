"""What agents report of whole clusters."""

from __future__ import annotations

import sqlalchemy as sa

from db.schema import clusters, hosts

_UNFILTERED = (
    sa.select(clusters.c.cluster, clusters.c.facts["unfiltered"])
    .where(clusters.c.cluster.in_(sa.select(hosts.c.cluster)))
    .order_by(clusters.c.cluster)
)


def unfiltered(connection: sa.Connection) -> dict[str, str]:
    """Return why each cluster that has hosts can't filter its servers' ports; empty: it can."""
    return {name: str(why) for name, why in connection.execute(_UNFILTERED)}

"""The lock of a network, against all that is made on it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from common.errors import NetworkNotFound
from db.schema import networks, subnets


def locked(connection: sa.Connection, network_id: str) -> Any:
    """Return a network's row. Nobody makes a port on it until the transaction ends.

    Its subnets are locked too, as creating a port locks those. Raises NetworkNotFound.
    """
    row = connection.execute(
        sa.select(networks).where(networks.c.id == network_id).with_for_update()
    ).first()
    if row is None:
        raise NetworkNotFound(f"Network {network_id} could not be found.")
    connection.execute(
        sa.select(subnets.c.id)
        .where(subnets.c.network_id == network_id)
        .order_by(subnets.c.cidr)
        .with_for_update()
    ).all()
    return row

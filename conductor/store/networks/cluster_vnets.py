"""The SDN vnets of clusters, also those made by others, as heartbeats report them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from common.resources.states import InternalAction, ResourceType
from conductor.store.ledger import operations
from db.schema import clusters


def of_networks(connection: sa.Connection) -> frozenset[str]:
    """Return the vnets whose aliases say that they are networks', of whatever cloud."""
    return frozenset(one["vnet"] for _, one in _listed(connection) if one.get("network_id"))


def unknown(connection: sa.Connection) -> list[tuple[str, str, str, int | None]]:
    """Return (cluster, vnet, zone, tag) of the SDN vnets that the record doesn't know.

    Of those that the ledger has made, the record says what becomes of them: a list may be old.
    """
    listed = _listed(connection)
    named = sorted({one["network_id"] for _, one in listed if one.get("network_id")})
    made = operations.begun_about(
        connection, ResourceType.NETWORK, InternalAction.MAKE_VNET, named
    )
    return [
        (cluster, one["vnet"], one["zone"], one.get("tag"))
        for cluster, one in listed
        if one.get("network_id") not in made
    ]


def _listed(connection: sa.Connection) -> list[tuple[str, dict[str, Any]]]:
    found = connection.execute(sa.select(clusters.c.cluster, clusters.c.facts))
    return [(cluster, one) for cluster, facts in found for one in facts.get("vnets") or ()]

"""With whom networks are shared (Neutron's RBAC policies ``access_as_shared``).

Those of groups, which have a table of their own, are passed on to ``group_shares``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, NotFound
from common.rpc import deadlines
from conductor.rpc.networks.networks import NewShare
from conductor.store.networks import network_locks
from conductor.store.networks.filtering import group_shares
from db.reads.networks.network_access import EVERYBODY
from db.schema import network_shares, ports

_C = network_shares.c


def create(connection: sa.Connection, wanted: Sequence[NewShare]) -> list[str]:
    """Write shares, of one type; return their ids. Raises NotFound, Conflict."""
    if wanted[0].object_type in group_shares.KINDS:
        return group_shares.create(connection, wanted)
    locked = {
        network_id: network_locks.locked(connection, network_id)
        for network_id in sorted({new.object_id for new in wanted})
    }
    made = []
    for new in wanted:
        _require_new(connection, locked[new.object_id], new.target)
        made.append(insert(connection, new.object_id, new.target, new.project_id))
    return made


def change(connection: sa.Connection, share_id: str, target: str) -> None:
    """Share with another project instead. Raises NotFound, Conflict."""
    of_group = group_shares.find(connection, share_id)
    if of_group is not None:
        group_shares.change(connection, of_group, target)
        return
    share, network = _locked(connection, share_id)
    if target == share.target:
        return
    _require_new(connection, network, target)
    _require_unused(connection, network, share.target, {target})
    connection.execute(network_shares.update().where(_C.id == share_id).values(target=target))


def delete(connection: sa.Connection, share_id: str) -> None:
    """Delete a share. Raises NotFound, Conflict."""
    of_group = group_shares.find(connection, share_id)
    if of_group is not None:
        group_shares.delete(connection, of_group)
        return
    share, network = _locked(connection, share_id)
    _require_unused(connection, network, share.target)
    connection.execute(network_shares.delete().where(_C.id == share_id))


def insert(connection: sa.Connection, network_id: str, target: str, project_id: str) -> str:
    """Write a share; return its id."""
    share_id = deadlines.new_uuid()
    row = {
        "id": share_id,
        "network_id": network_id,
        "target": target,
        "project_id": project_id,
        "created_at": clock.utcnow(),
    }
    connection.execute(network_shares.insert(), [row])
    return share_id


def with_all(connection: sa.Connection, network: Any, wanted: bool) -> None:
    """Share a network with all projects, or no more; its row is locked. Raises Conflict."""
    there = EVERYBODY in _targets(connection, network.id)
    if wanted and not there:
        insert(connection, network.id, EVERYBODY, network.project_id)
    if wanted or not there:
        return
    if _losing(connection, network, EVERYBODY, ()):
        raise Conflict(
            f"Unable to reconfigure sharing settings for network {network.id}. Multiple projects "
            "are using it.",
            type="InvalidSharedSetting",
        )
    everybody = (_C.network_id == network.id) & (_C.target == EVERYBODY)
    connection.execute(network_shares.delete().where(everybody))


def delete_all(connection: sa.Connection, network_id: str) -> None:
    """Delete the shares of a network."""
    connection.execute(network_shares.delete().where(_C.network_id == network_id))


# --- inner


def _locked(connection: sa.Connection, share_id: str) -> tuple[Any, Any]:
    """Return a share and its network, locked: no other transaction changes it or adds ports.

    Raises NotFound.
    """
    query = sa.select(network_shares).where(_C.id == share_id)
    share = connection.execute(query).first()
    if share is not None:
        network = network_locks.locked(connection, share.network_id)
        # As it is now: another one had the lock.
        share = connection.execute(query).first()
        if share is not None:
            return share, network
    raise NotFound(
        f"RBAC policy of type network with ID {share_id} not found", type="RbacPolicyNotFound"
    )


def _targets(connection: sa.Connection, network_id: str) -> set[str]:
    query = sa.select(_C.target).where(_C.network_id == network_id)
    return set(connection.execute(query).scalars())


def _require_new(connection: sa.Connection, network: Any, target: str) -> None:
    # All projects share a cluster's network.
    if network.discovered or target in _targets(connection, network.id):
        raise Conflict(
            "An RBAC policy already exists with those values.", type="DuplicateRbacPolicy"
        )


def _require_unused(
    connection: sa.Connection, network: Any, target: str, instead: Sequence[str] | set[str] = ()
) -> None:
    losing = _losing(connection, network, target, instead)
    if losing:
        raise Conflict(
            f"RBAC policy on object {network.id} cannot be removed because other objects depend "
            f"on it.\nDetails: {len(losing)} project(s) have ports on the network.",
            type="RbacPolicyInUse",
        )


def _losing(
    connection: sa.Connection, network: Any, target: str, instead: Sequence[str] | set[str]
) -> set[str]:
    """Return the projects with ports that lose the network with the share of a target."""
    kept = (_targets(connection, network.id) - {target}) | set(instead)
    if network.external or EVERYBODY in kept:
        return set()
    query = sa.select(ports.c.project_id).distinct().where(ports.c.network_id == network.id)
    if target != EVERYBODY:
        query = query.where(ports.c.project_id == target)
    return set(connection.execute(query).scalars()) - {network.project_id} - kept

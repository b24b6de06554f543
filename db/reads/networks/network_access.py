"""Which networks a project may use: conditions on rows of ``networks``."""

from __future__ import annotations

import sqlalchemy as sa

from db.schema import group_shares, network_shares, networks

#: the target of what all projects share
EVERYBODY = "*"


def shared_with(project_id: str | sa.BindParameter[str]) -> sa.ColumnElement[bool]:
    """Return whether others share the network with the project; those of clusters all do."""
    share = sa.exists().where(
        network_shares.c.network_id == networks.c.id,
        network_shares.c.target.in_([project_id, EVERYBODY]),
    )
    return networks.c.discovered | share


def group_shared_with(group_id: sa.ColumnElement[str], project_id: str) -> sa.ColumnElement[bool]:
    """Return whether others share a security group, or an address group, with the project."""
    return sa.exists().where(
        group_shares.c.object_id == group_id,
        group_shares.c.target.in_([project_id, EVERYBODY]),
    )


def own_or_shared(project_id: str | sa.BindParameter[str]) -> sa.ColumnElement[bool]:
    """Return whether the project may use the network without naming it."""
    return (networks.c.project_id == project_id) | shared_with(project_id)


def usable_by(project_id: str | sa.BindParameter[str]) -> sa.ColumnElement[bool]:
    """Return whether the project may see the network, and make ports on it."""
    return own_or_shared(project_id) | networks.c.external

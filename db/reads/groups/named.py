"""IDs of what profiles name by ID or name: flavors, images, networks."""

from __future__ import annotations

import sqlalchemy as sa

from db.reads.images import images
from db.reads.images.images import Condition
from db.reads.keyset import Page
from db.reads.networks import networks
from db.reads.networks.networks import EVERYBODY, Viewer
from db.reads.servers import flavors
from db.reads.servers.flavors import Filters

#: as many as show that a name is not of one alone
_TWO = Page(limit=2)


def flavor(connection: sa.Connection, name: str, project_id: str | None) -> list[str]:
    """Return the flavor of this ID, else those of this name that the project may use."""
    found = flavors.find(connection, name, project_id)
    if found is not None:
        return [found.flavorid]
    wanted = Filters(name=name)
    listed = flavors.list_flavors(connection, wanted, project_id=project_id, limit=2)
    return [one.flavorid for one in listed]


def image(connection: sa.Connection, name: str, project_id: str | None) -> list[str]:
    """Return the image of this ID, else those of this name that the project sees."""
    if images.get(connection, name, project_id) is not None:
        return [name]
    wanted = [Condition("name", "eq", name)]
    listed = images.listing(connection, wanted, page=_TWO, project=project_id)
    return [one.id for one in listed]


def network(connection: sa.Connection, name: str, project_id: str | None) -> list[str]:
    """Return the network of this ID, else those of this name that the project sees."""
    mine = {"everything": False, "own": True, "shared": True}
    viewer = EVERYBODY if project_id is None else Viewer(project_id, **mine)
    for column in ("id", "name"):
        where = {column: [name]}
        listed = networks.list_networks(connection, where, page=_TWO, viewer=viewer)
        if listed:
            return [one.id for one in listed]
    return []

"""Writes of flavors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict, FlavorNotFound, NotFound
from conductor.rpc.servers.flavors import NewFlavor
from db.schema import flavor_access, flavors


def create(connection: sa.Connection, flavor: NewFlavor) -> str:
    """Create a flavor; return its flavorid. Raises Conflict when name or id is taken."""
    flavorid = flavor.flavorid or ids.new_uuid()
    for column, value, word in (
        (flavors.c.name, flavor.name, "name"),
        (flavors.c.flavorid, flavorid, "ID"),
    ):
        if connection.execute(sa.select(flavors.c.id).where(column == value)).first():
            raise Conflict(f"Flavor with {word} {value} already exists.")
    connection.execute(
        flavors.insert().values(
            flavorid=flavorid,
            name=flavor.name,
            vcpus=flavor.vcpus,
            memory_mib=flavor.memory_mib,
            disk_gib=flavor.disk_gib,
            ephemeral_gib=flavor.ephemeral_gib,
            swap_mib=flavor.swap_mib,
            rxtx_factor=flavor.rxtx_factor,
            is_public=flavor.is_public,
            description=flavor.description,
            extra_specs={},
            created_at=clock.utcnow(),
        )
    )
    return flavorid


def seed(connection: sa.Connection, wanted: Sequence[NewFlavor]) -> None:
    """Create these flavors if there are none at all."""
    if connection.execute(sa.select(flavors.c.id).limit(1)).first() is None:
        for flavor in wanted:
            create(connection, flavor)


def _flavor_id(connection: sa.Connection, flavorid: str) -> int:
    row = connection.execute(
        sa.select(flavors.c.id).where(flavors.c.flavorid == flavorid).with_for_update()
    ).first()
    if row is None:
        raise FlavorNotFound(f"Flavor {flavorid} could not be found.", flavorid=flavorid)
    return int(row.id)


def update(connection: sa.Connection, flavorid: str, description: str | None) -> None:
    """Change the description. Raises FlavorNotFound."""
    mine = flavors.c.id == _flavor_id(connection, flavorid)
    connection.execute(flavors.update().where(mine).values(description=description))


def delete(connection: sa.Connection, flavorid: str) -> None:
    """Delete a flavor. Raises FlavorNotFound."""
    key = _flavor_id(connection, flavorid)
    connection.execute(flavor_access.delete().where(flavor_access.c.flavor_id == key))
    connection.execute(flavors.delete().where(flavors.c.id == key))


def set_extra_specs(
    connection: sa.Connection, flavorid: str, specs: Mapping[str, str], delete: Sequence[str]
) -> None:
    """Merge and drop. Raises FlavorNotFound, and NotFound for a missing key to drop."""
    key = _flavor_id(connection, flavorid)
    now = dict(
        connection.execute(
            sa.select(flavors.c.extra_specs).where(flavors.c.id == key)
        ).scalar_one()
    )
    for name in delete:
        if now.pop(name, None) is None:
            raise NotFound(f"Flavor {flavorid} has no extra specs with key {name}.")
    now.update(specs)
    connection.execute(flavors.update().where(flavors.c.id == key).values(extra_specs=now))


def set_access(
    connection: sa.Connection, flavorid: str, project_id: str, *, allowed: bool
) -> None:
    """Grant or revoke. Raises FlavorNotFound; Conflict if granted; NotFound if not granted."""
    key = _flavor_id(connection, flavorid)
    mine = (flavor_access.c.flavor_id == key) & (flavor_access.c.project_id == project_id)
    there = connection.execute(sa.select(flavor_access.c.flavor_id).where(mine)).first()
    if allowed and there:
        raise Conflict(
            f"Flavor access already exists for flavor {flavorid} and project {project_id} "
            "combination."
        )
    if not allowed and not there:
        raise NotFound(f"Flavor access not found for {flavorid} / {project_id} combination.")
    if allowed:
        connection.execute(flavor_access.insert().values(flavor_id=key, project_id=project_id))
    else:
        connection.execute(flavor_access.delete().where(mine))

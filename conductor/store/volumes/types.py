"""Volume types: one for each storage that takes disks, and what administrators make of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict, Invalid, NotFound
from common.resources.quotas import OF_TYPES
from common.rpc import deadlines
from conductor.rpc.volumes.types import VolumeTypeEdit
from conductor.store.quotas import quotas
from conductor.store.volumes.backends import Backend
from db.schema import volume_default_types, volume_type_access, volume_types, volumes

_C = volume_types.c
#: no project's name has a space
_LOCK = "types of volumes"

BACKEND = "volume_backend_name"
ZONES = "RESKEY:availability_zones"
MULTIATTACH = "multiattach"
KIND, SHARED, SNAPSHOTS = "storage:type", "storage:shared", "storage:snapshots"


def follow(connection: sa.Connection, backends: Iterable[Backend]) -> list[str]:
    """Write a type for each storage that has none yet; return their names.

    Existing types are not changed: administrators may have edited them, and a storage may return.
    """
    found: dict[str, list[Backend]] = {}
    for one in backends:
        found.setdefault(one.storage.name, []).append(one)
    has = set(connection.execute(sa.select(_C.storage)).scalars())
    if not found.keys() - has:
        return []
    quotas.lock(connection, _LOCK)
    has = set(connection.execute(sa.select(_C.storage)).scalars())
    names = set(connection.execute(sa.select(_C.name)).scalars())
    rows = [_row(name, found[name]) for name in sorted(found.keys() - has) if name not in names]
    if rows:
        connection.execute(volume_types.insert(), rows)
    return [row["name"] for row in rows]


def _row(name: str, backends: list[Backend]) -> dict[str, Any]:
    zones = sorted({one.zone for one in backends if one.zone})
    shared = all(one.storage.shared for one in backends)
    specs = {
        BACKEND: name,
        ZONES: ",".join(zones),
        MULTIATTACH: "<is> False",
        KIND: backends[0].storage.type,
        SHARED: str(shared),
    }
    return {
        "id": ids.named("volume_type", name),
        "name": name,
        "description": None,
        "is_public": True,
        "storage": name,
        "extra_specs": specs,
        "created_at": clock.utcnow(),
    }


def get(connection: sa.Connection, type_id: str) -> Any | None:
    """Return a type by its id; None: there is none."""
    return connection.execute(sa.select(volume_types).where(_C.id == type_id)).first()


def set_snapshot_way(connection: sa.Connection, type_id: str, way: str) -> None:
    """Write how snapshots of a type's volumes are made, as Proxmox VE says; once."""
    row = get(connection, type_id)
    if row is not None and row.extra_specs.get(SNAPSHOTS) != way:
        specs = {**row.extra_specs, SNAPSHOTS: way}
        changed = volume_types.update().where(_C.id == type_id)
        connection.execute(changed.values(extra_specs=specs))


def storage_of(row: Any | None) -> str | None:
    """Return the storage of a type's volumes; None: any, or there is no type."""
    return None if row is None else row.storage or None


def specs_of(row: Any | None) -> dict[str, str]:
    """Return the extra specs that a type's storage must meet: all but what says which it is."""
    return {} if row is None else {k: v for k, v in row.extra_specs.items() if k != BACKEND}


def usable(connection: sa.Connection, type_id: str, project_id: str) -> Any | None:
    """Return a type that a project may use; None: there is none."""
    allowed = sa.exists().where(
        volume_type_access.c.type_id == _C.id, volume_type_access.c.project_id == project_id
    )
    query = sa.select(volume_types).where(_C.id == type_id, _C.is_public | allowed)
    return connection.execute(query).first()


def named(connection: sa.Connection, name: str) -> Any | None:
    """Return a type by its name; None: there is none."""
    return connection.execute(sa.select(volume_types).where(_C.name == name)).first()


def public(connection: sa.Connection) -> list[Any]:
    """Return the types that every project may use, by name."""
    return list(connection.execute(sa.select(volume_types).where(_C.is_public).order_by(_C.name)))


def create(connection: sa.Connection, asked: VolumeTypeEdit) -> str:
    """Write a type; return its id. Raises Conflict, Invalid."""
    quotas.lock(connection, _LOCK)
    name, specs = str(asked.name), dict(asked.extra_specs or {})
    _require_new(connection, name)
    type_id = deadlines.new_uuid()
    connection.execute(
        volume_types.insert().values(
            id=type_id,
            name=name,
            description=asked.description,
            is_public=asked.is_public is not False,
            storage=specs.get(BACKEND, ""),
            extra_specs=specs,
            created_at=clock.utcnow(),
        )
    )
    return type_id


def edit(
    connection: sa.Connection, type_id: str, asked: VolumeTypeEdit, default: str | None
) -> None:
    """Change a type. ``default``: the name of the default type, if there is one.

    Raises NotFound, Conflict, Invalid (another name for the default type, or other extra specs
    for a type that volumes have).
    """
    quotas.lock(connection, _LOCK)
    row = _required(connection, type_id)
    values: dict[str, Any] = {
        name: getattr(asked, name)
        for name in ("name", "description", "is_public", "extra_specs")
        if getattr(asked, name) is not None
    }
    name = values.get("name", row.name)
    if name != row.name:
        # Cinder lets it be: then no volume can be made without a type.
        _require_not(default, row, "renamed")
        _require_new(connection, name)
        renamed = {f"{kind}_{row.name}": f"{kind}_{name}" for kind in OF_TYPES}
        quotas.rename_resources(connection, renamed)
    if asked.extra_specs is not None:
        if _is_used(connection, type_id):
            raise Invalid("Volume Type is currently in use.")
        values["storage"] = asked.extra_specs.get(BACKEND, "")
    changed = volume_types.update().where(_C.id == type_id)
    connection.execute(changed.values(updated_at=clock.utcnow(), **values))


def delete(connection: sa.Connection, type_id: str, default: str | None) -> None:
    """Delete a type that no volume has, and that is no default one. Raises NotFound, Invalid.

    ``default``: the name of that, if there is one.
    """
    quotas.lock(connection, _LOCK)
    row = _required(connection, type_id)
    _require_not(row.name if _is_default(connection, type_id) else default, row, "deleted")
    if _is_used(connection, type_id):
        raise Invalid(f"Volume Type {type_id} deletion is not allowed with volumes present.")
    connection.execute(volume_type_access.delete().where(volume_type_access.c.type_id == type_id))
    connection.execute(volume_types.delete().where(_C.id == type_id))


def allow(connection: sa.Connection, type_id: str, project_id: str, *, wanted: bool) -> None:
    """Let a project use a type, or no more. Raises NotFound, Conflict."""
    quotas.lock(connection, _LOCK)
    if _required(connection, type_id).is_public:
        raise Conflict("Type access modification is not applicable to public volume type.")
    access = volume_type_access
    mine = (access.c.type_id == type_id) & (access.c.project_id == project_id)
    has = connection.execute(sa.select(access.c.type_id).where(mine)).first() is not None
    words = f"Volume type access for {type_id} / {project_id} combination"
    if wanted and has:
        raise Conflict(f"{words} already exists.")
    if not wanted and not has:
        raise NotFound(f"{words.replace('Volume type access', 'Volume type access not found')}.")
    if wanted:
        connection.execute(access.insert().values(type_id=type_id, project_id=project_id))
    else:
        connection.execute(access.delete().where(mine))


def set_default(connection: sa.Connection, project_id: str, type_id: str | None) -> None:
    """Set the type of a project's volumes for which none is named; None: it has none of its own.

    Raises NotFound.
    """
    quotas.lock(connection, _LOCK)
    table = volume_default_types
    connection.execute(table.delete().where(table.c.project_id == project_id))
    if type_id is not None:
        _required(connection, type_id)
        connection.execute(table.insert().values(project_id=project_id, type_id=type_id))


def default_of(connection: sa.Connection, project_id: str) -> str | None:
    """Return the id of a project's own default type; None: it has none."""
    table = volume_default_types.c
    query = sa.select(table.type_id).where(table.project_id == project_id)
    return connection.execute(query).scalar()


def _is_default(connection: sa.Connection, type_id: str) -> bool:
    query = sa.select(volume_default_types).where(volume_default_types.c.type_id == type_id)
    return connection.execute(query.limit(1)).first() is not None


def _is_used(connection: sa.Connection, type_id: str) -> bool:
    has = (volumes.c.type_id == type_id) | (volumes.c.new_type_id == type_id)
    return connection.execute(sa.select(volumes.c.id).where(has).limit(1)).first() is not None


def _required(connection: sa.Connection, type_id: str) -> Any:
    row = get(connection, type_id)
    if row is None:
        raise NotFound(f"Volume type {type_id} could not be found.")
    return row


def _require_not(default: str | None, row: Any, what: str) -> None:
    if row.name == default:
        raise Invalid(f"The volume type {row.id} is a default volume type and cannot be {what}.")


def _require_new(connection: sa.Connection, name: str) -> None:
    if named(connection, name) is not None:
        raise Conflict(f"Volume Type {name} already exists.")

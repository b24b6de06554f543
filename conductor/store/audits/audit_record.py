"""What only the audit reads of the record: whole tables, and single facts to prove a heal.

Rows are returned as the dataclasses that the audit compares: their fields name the columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from common.resources.states import OPEN_STATES, OperationState, ResourceType
from common.resources.volumes import VolumeAction
from conductor.plans import NewContent, Plan, RebuildPlan, ReimagePlan, load_plan
from conductor.store.servers.vmids import RESERVED
from db import records, schema
from db.resources import about_servers

R = TypeVar("R", bound=records.Record)

#: values in one IN (…)
CHUNK = 500
#: (cluster, VMID)
Place = tuple[str, int]


def rows(connection: sa.Connection, table: str, kind: type[R]) -> list[R]:
    """Return every row of a table."""
    query = sa.select(*records.columns(schema.metadata.tables[table], kind))
    return [kind(*row) for row in connection.execute(query)]


def open_operations(connection: sa.Connection, kind: type[R]) -> list[R]:
    """Return every operation that has not ended."""
    table = schema.operations
    query = sa.select(*records.columns(table, kind)).where(table.c.state.in_(OPEN_STATES))
    return [kind(*row) for row in connection.execute(query)]


def uploads(connection: sa.Connection, kind: type[R]) -> list[R]:
    """Return every image whose data a user sent."""
    table = schema.images
    query = sa.select(*records.columns(table, kind)).where(
        table.c.project_id.is_not(None), table.c.md5.is_not(None)
    )
    return [kind(*row) for row in connection.execute(query)]


def busy(connection: sa.Connection, resource_type: ResourceType) -> frozenset[str]:
    """Return the resources of a type with an open operation."""
    table = schema.operations
    query = sa.select(table.c.resource_id).where(
        table.c.resource_type == resource_type, table.c.state.in_(OPEN_STATES)
    )
    return frozenset(connection.execute(query).scalars())


def open_plans(connection: sa.Connection, actions: Sequence[str]) -> list[Plan]:
    """Return the plans of the open operations with these actions."""
    table = schema.operations
    query = sa.select(table.c.action, table.c.plan).where(
        table.c.action.in_(actions), table.c.state.in_(OPEN_STATES)
    )
    return [load_plan(row.action, row.plan or {}) for row in connection.execute(query)]


def busy_holders(connection: sa.Connection) -> frozenset[Place]:
    """Return (cluster, VMID) of the holders that open operations make, change or remove.

    A volume's record names one of them, while it changes from one to another, and none, once its
    holder is to be removed.
    """
    table = schema.operations
    query = sa.select(table.c.action, table.c.plan).where(
        table.c.resource_type == ResourceType.VOLUME, table.c.state.in_(OPEN_STATES)
    )
    plans = [load_plan(row.action, row.plan or {}) for row in connection.execute(query)]
    found = [one.target for one in plans] + [one.place for one in new_contents(connection)]
    return frozenset(
        (one.cluster, one.vmid) for one in found if one.cluster and one.vmid is not None
    )


def new_contents(connection: sa.Connection) -> list[NewContent]:
    """Return what volumes are to have in them instead, by open rebuilds and reimages."""
    plans = open_plans(connection, ("rebuild", VolumeAction.REIMAGE))
    found = [one.content for one in plans if isinstance(one, RebuildPlan | ReimagePlan)]
    return [one for one in found if one is not None]


def living_servers(connection: sa.Connection, kind: type[records.Record]) -> list[dict[str, Any]]:
    """Return the columns of every server that is not deleted."""
    table = schema.servers
    query = sa.select(*records.columns(table, kind)).where(table.c.deleted_at.is_(None))
    return [dict(row._mapping) for row in connection.execute(query)]


def servers(
    connection: sa.Connection, kind: type[records.Record], uuids: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the columns of these servers, deleted ones included."""
    table, found = schema.servers, []
    for part in _parts(uuids):
        query = sa.select(*records.columns(table, kind)).where(table.c.uuid.in_(part))
        found += [dict(row._mapping) for row in connection.execute(query)]
    return found


def agents(connection: sa.Connection) -> list[tuple[str, str, str]]:
    """Return (cluster, host, worker) of every host, by host."""
    columns = schema.hosts.c
    query = sa.select(columns.cluster, columns.host, columns.worker).order_by(columns.host)
    return [(row.cluster, row.host, row.worker) for row in connection.execute(query)]


def journal(
    connection: sa.Connection, places: Collection[Place]
) -> tuple[dict[Place, set[str | None]], dict[Place, frozenset[str]]]:
    """Return which servers ever had these VMIDs (None: a template), or were refused them."""
    table = schema.vmid_journal.c
    found: dict[Place, set[str | None]] = {}
    refused: dict[Place, set[str]] = {}
    for cluster in sorted({cluster for cluster, _ in places}):
        for part in _parts(sorted(vmid for name, vmid in places if name == cluster)):
            query = sa.select(table.vmid, table.server_uuid, table.refused).where(
                table.cluster == cluster, table.vmid.in_(part)
            )
            for row in connection.execute(query):
                if not row.refused:
                    found.setdefault((cluster, row.vmid), set()).add(row.server_uuid)
                elif row.server_uuid:
                    refused.setdefault((cluster, row.vmid), set()).add(row.server_uuid)
    return found, {place: frozenset(who) for place, who in refused.items()}


def actions_on(
    connection: sa.Connection, uuids: Sequence[str], actions: Sequence[str]
) -> Mapping[str, set[str]]:
    """Return which of these actions were ever begun on these servers."""
    columns = schema.operations.c
    found: dict[str, set[str]] = {}
    for part in _parts(uuids):
        query = sa.select(columns.resource_id, columns.action).where(
            about_servers(part), columns.action.in_(actions)
        )
        for row in connection.execute(query):
            found.setdefault(row.resource_id, set()).add(row.action)
    return found


def done_on(connection: sa.Connection, uuids: Sequence[str], action: str) -> frozenset[str]:
    """Return on which of these servers an action was carried out."""
    columns = schema.operations.c
    found: set[str] = set()
    for part in _parts(uuids):
        query = sa.select(columns.resource_id).where(
            about_servers(part),
            columns.action == action,
            columns.state == OperationState.DONE,
        )
        found |= set(connection.execute(query).scalars())
    return frozenset(found)


# --- single facts


def provider(connection: sa.Connection, host: str | None) -> str | None:
    """Return the resource provider of a host; None if unknown."""
    columns = schema.hosts.c
    return connection.execute(sa.select(columns.uuid).where(columns.host == host)).scalar()


def is_template(connection: sa.Connection, cluster: str, vmid: int) -> bool:
    """Return whether the record has a template there."""
    columns = schema.templates.c
    query = sa.select(columns.vmid).where(columns.cluster == cluster, columns.vmid == vmid)
    return connection.execute(query).first() is not None


def is_holder(connection: sa.Connection, cluster: str, vmid: int) -> bool:
    """Return whether the record of a volume, or of a snapshot that is a copy, names it there."""
    for table in (schema.volumes, schema.volume_snapshots):
        query = sa.select(table.c.id).where(table.c.cluster == cluster, table.c.vmid == vmid)
        if connection.execute(query).first() is not None:
            return True
    return False


def is_reserved(connection: sa.Connection, cluster: str, vmid: int) -> bool:
    """Return whether the VMID is reserved."""
    columns = schema.vmids.c
    query = sa.select(columns.vmid).where(
        columns.cluster == cluster, columns.vmid == vmid, columns.state == RESERVED
    )
    return connection.execute(query).first() is not None


def vmid_row(connection: sa.Connection, cluster: str, vmid: int) -> tuple[str, str | None] | None:
    """Return (state, server) of a VMID, with its row locked; None if it has none."""
    columns = schema.vmids.c
    mine = (columns.cluster == cluster) & (columns.vmid == vmid)
    row = connection.execute(sa.select(schema.vmids).where(mine).with_for_update()).first()
    return None if row is None else (row.state, row.server_uuid)


def _parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]

"""Cached templates: which image's template has which VMID, and which are not needed any more.

One per image and node, or per image and shared storage. A template's VMID remains reserved as long
as its row exists. In the row of its VMID, ``reason`` says whether it is not needed (``IDLE``) or
being removed (``RETIRING``), and ``since`` since when. If removing it, or caching it ahead of a
build (``NOT_MADE``), failed, ``reason`` says why: operators read it in the list of VMIDs.
"""

from __future__ import annotations

import datetime
import functools
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict
from common.messages.commands import Template
from common.messages.facts import HostFacts
from common.messages.reports import Failure
from conductor.store.servers import vmids as reservations
from conductor.store.servers.servers import OWN_ROOT
from db.schema import hosts, images, servers, templates, vmids

IDLE = "The image is gone, and no server was made of the template."
RETIRING = "The template is being removed."
NOT_MADE = "The image could not be made ready ahead of a build."


@dataclass(frozen=True)
class Known:
    """A template by the record."""

    cluster: str
    node: str
    storage: str
    image_id: str
    vmid: int
    reason: str | None
    since: datetime.datetime

    @property
    def retiring(self) -> bool:
        """Return whether an agent was asked to remove it."""
        return (self.reason or "").startswith(RETIRING)


def reserve(connection: sa.Connection, facts: HostFacts, image_id: str) -> Template | None:
    """Return the image's template for a host; its VMID is reserved if there is none yet.

    None while one is being removed (the next one has another VMID), and if no VMID is free: a
    build can do without.
    """
    found = _find(connection, facts, image_id)
    if found is None:
        # The band's row lock, held by reserve, lets only one transaction get here.
        try:
            vmid = reservations.reserve(connection, facts.cluster, None, None)
        except reservations.BandExhausted:
            return None
        found = _find(connection, facts, image_id)
        if found is None:
            connection.execute(
                templates.insert().values(
                    cluster=facts.cluster,
                    node=facts.node,
                    storage=facts.vm_storage,
                    image_id=image_id,
                    vmid=vmid,
                    created_at=clock.utcnow(),
                )
            )
            return Template(vmid, facts.node, facts.vm_storage)
        reservations.free(connection, facts.cluster, vmid)
    if found.retiring:
        return None
    return Template(found.vmid, found.node, found.storage)


def insert_found(
    connection: sa.Connection, cluster: str, node: str, storage: str, image_id: str, vmid: int
) -> None:
    """Write a template that was found, whose VMID is reserved. Raises Conflict if the image has
    another one there."""
    columns = templates.c
    there = sa.select(columns.vmid).where(
        columns.cluster == cluster,
        columns.node == node,
        columns.storage == storage,
        columns.image_id == image_id,
    )
    other = connection.scalar(there)
    if other is not None:
        raise Conflict(f"Image {image_id} has template {other} there.")
    values = {"cluster": cluster, "node": node, "storage": storage, "image_id": image_id}
    connection.execute(templates.insert().values(vmid=vmid, created_at=clock.utcnow(), **values))


def _find(connection: sa.Connection, facts: HostFacts, image_id: str) -> Known | None:
    shared = any(one.shared for one in facts.storages if one.name == facts.vm_storage)
    wanted = {"cluster": facts.cluster, "storage": facts.vm_storage, "image_id": image_id}
    if not shared:
        wanted["node"] = facts.node
    row = connection.execute(_find_query(tuple(wanted)), wanted).first()
    return None if row is None else Known(**row._mapping)


@functools.cache
def _find_query(names: tuple[str, ...]) -> sa.Select[Any]:
    columns = templates.c
    mine = (columns[name] == sa.bindparam(name) for name in names)
    return _query().where(*mine).order_by(columns.created_at, columns.node)


def _query() -> sa.Select[Any]:
    columns = templates.c
    of_it = (vmids.c.cluster == columns.cluster) & (vmids.c.vmid == columns.vmid)
    return sa.select(
        columns.cluster,
        columns.node,
        columns.storage,
        columns.image_id,
        columns.vmid,
        vmids.c.reason,
        vmids.c.since,
    ).select_from(templates.join(vmids, of_it))


def unneeded(connection: sa.Connection) -> tuple[list[Known], list[Known]]:
    """Return (templates that nothing needs, those marked so that are needed again).

    A template is needed if its cluster has the image, or a living server made from the image: it
    may be a linked clone.
    """
    known = [Known(**row._mapping) for row in connection.execute(_query())]
    if not known:
        return [], []
    there = {
        (row.id, cluster)
        for row in connection.execute(sa.select(images.c.id, images.c.locations))
        for cluster in row.locations
    }
    used = {
        tuple(row)
        for row in connection.execute(
            sa.select(servers.c.image_id, servers.c.cluster)
            .where(
                servers.c.deleted_at.is_(None),
                servers.c.image_id.in_({one.image_id for one in known}),
                OWN_ROOT,
            )
            .distinct()
        )
    }
    needed = {
        one
        for one in known
        if (one.image_id, one.cluster) in there | used or (one.image_id, None) in used
    }
    idle = [one for one in known if one not in needed]
    return idle, [one for one in known if one in needed and one.reason == IDLE]


def mark(connection: sa.Connection, one: Known, reason: str | None) -> None:
    """Store since when a template is idle, is being removed, or (None) is needed again."""
    connection.execute(
        vmids.update()
        .where(vmids.c.cluster == one.cluster, vmids.c.vmid == one.vmid)
        .values(reason=reason, since=clock.utcnow())
    )


def why(failure: Failure, host: str) -> str:
    """Return how it failed, in a sentence for the list of VMIDs."""
    remedy = f" Remedy: {failure.remedy}." if failure.remedy else ""
    return f"{failure.category} on {host}: {failure.message}{remedy}"


def failed(connection: sa.Connection, cluster: str, vmid: int, text: str) -> None:
    """Store why a template could not be removed, or not cached ahead of a build."""
    known = get(connection, cluster, vmid)
    if known is None or known.reason == IDLE:
        return
    began = f"{RETIRING} The last try failed:" if known.retiring else NOT_MADE
    _set_reason(connection, known, f"{began} {text}")


def ready(connection: sa.Connection, cluster: str, vmid: int) -> None:
    """Store that it was made: an earlier failure is deleted."""
    known = get(connection, cluster, vmid)
    if known is not None and (known.reason or "").startswith(NOT_MADE):
        _set_reason(connection, known, None)


def made_after_all(connection: sa.Connection) -> list[Known]:
    """Return those that could not be cached ahead, but that their node has by now."""
    rows = connection.execute(_query().where(vmids.c.reason.startswith(NOT_MADE)))
    return [
        known for known in (Known(**row._mapping) for row in rows) if _cached(connection, known)
    ]


def _cached(connection: sa.Connection, known: Known) -> bool:
    mine = (hosts.c.cluster == known.cluster) & (hosts.c.node == known.node)
    found = connection.execute(sa.select(hosts.c.facts).where(mine)).scalars()
    return any(known.image_id in facts.get("cached_images", ()) for facts in found)


def get(connection: sa.Connection, cluster: str, vmid: int) -> Known | None:
    """Return the template with a VMID; None if the record has none."""
    mine = (templates.c.cluster == cluster) & (templates.c.vmid == vmid)
    row = connection.execute(_query().where(mine)).first()
    return None if row is None else Known(**row._mapping)


def _set_reason(connection: sa.Connection, known: Known, reason: str | None) -> None:
    """Change the reason, not its time."""
    mine = (vmids.c.cluster == known.cluster) & (vmids.c.vmid == known.vmid)
    connection.execute(vmids.update().where(mine).values(reason=reason))


def delete_absent(connection: sa.Connection, cluster: str, vmid: int) -> bool:
    """Delete a template confirmed absent; return False if none was being removed there."""
    mine = (vmids.c.cluster == cluster) & (vmids.c.vmid == vmid)
    freed = connection.execute(vmids.delete().where(mine, vmids.c.reason.startswith(RETIRING)))
    if freed.rowcount:
        connection.execute(
            templates.delete().where(templates.c.cluster == cluster, templates.c.vmid == vmid)
        )
    return bool(freed.rowcount)

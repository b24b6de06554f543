"""Whether the database was restored from a backup, by the marks of what the cloud has made since.

Every operation has an *epoch*: its ID and a base. Commands carry it, and the marks of what they
make name it, with the VMID. Operations are never deleted. So a mark of this cloud with the epoch
of no operation about that resource was made by a record that is lost: the database is older than
its clusters. Then everything that destroys is held until an operator releases it, and operations
that were open only look. A person's copy of a VM has the mark of its source, and another VMID.

The same is compared when PostgreSQL has begun a new timeline, as after a fail-over: what the
former primary committed last may be missing on a replica that was not synchronous.

After the release marks up to the highest epoch that was seen prove nothing any more, and the base
is raised above it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.log import logger
from common.messages.facts import OwnerMark
from common.resources.states import OPEN_STATES, ResourceType
from conductor.store.ledger import pulse
from conductor.store.networks import unknown_vms
from conductor.store.servers import vmids
from db.reads.cloud import sentence
from db.schema import cloud_identity, operations

LOG = logger(__name__)

_I, _O = cloud_identity.c, operations.c


#: IDs of operations that are left out after a fail-over: agents and marks may know them, of
#: operations that are lost; and epochs that are left out when a record is released
_LEFT_OUT = 1_000_000


@dataclass(frozen=True)
class Record:
    """What the database says about itself."""

    cloud_id: str = ""
    epoch_base: int = 0
    epoch_settled: int = 0
    compare_since: datetime.datetime | None = None
    compare_operation: int = 0
    held_at: datetime.datetime | None = None
    held_because: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Marked:
    """A mark as it was seen, and where."""

    cluster: str
    vmid: int | None
    mark: OwnerMark

    @property
    def what(self) -> str:
        """Where it is, for people."""
        return f"VM {self.vmid} of cluster {self.cluster}" if self.vmid else self.cluster


_FIELDS = (
    *(_I.cloud_id, _I.epoch_base, _I.epoch_settled, _I.compare_since, _I.compare_operation),
    *(_I.held_at, _I.held_because),
)


def read(connection: sa.Connection, *, lock: bool = False) -> Record:
    """Return what the database says about itself; ``lock``: to change it."""
    query = sa.select(*_FIELDS)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return Record() if row is None else Record(**row._mapping)


def last_operation(connection: sa.Connection) -> int:
    """Return the ID of the newest operation; 0: there was none."""
    return connection.scalar(sa.select(sa.func.max(_O.id))) or 0


def begin_to_compare(connection: sa.Connection, owner: str) -> None:
    """Store that the record is to be compared, unless another conductor runs that has seen it, or
    has stored so a moment ago, as after a fail-over: signs of all conductors are old then."""
    since = read(connection).compare_since
    lately = clock.utcnow() - datetime.timedelta(seconds=pulse.GAP_SECONDS)
    if (since is None or since < lately) and not pulse.others_run(connection, owner):
        _begin(connection, last_operation(connection))


def follow(connection: sa.Connection, timeline: str) -> bool:
    """Store which timeline of the database is written now, and that the record is to be compared
    if it was another one before; return whether it was."""
    known = connection.scalar(sa.select(_I.timeline).with_for_update())
    if known == timeline:
        return False
    connection.execute(cloud_identity.update().values(timeline=timeline))
    if known is None:
        return False
    # What the former primary had at least: all clusters are compared.
    last = max(last_operation(connection), 1)
    _begin(connection, last)
    sequence = sa.func.pg_get_serial_sequence(operations.name, _O.id.name)
    connection.execute(
        sa.select(sa.func.setval(sequence, sa.literal(last + _LEFT_OUT, sa.BigInteger)))
    )
    LOG.warning(
        "The database is at timeline %s, and was at %s: another server has taken over. The record "
        "is compared with the clusters, as the last that was committed may be missing.",
        *(timeline, known),
    )
    return True


def _begin(connection: sa.Connection, last: int) -> None:
    connection.execute(
        cloud_identity.update().values(compare_since=clock.utcnow(), compare_operation=last)
    )
    if read(connection).held_at is not None:
        _only_look(connection, last)
        unknown_vms.doubt(connection)


def unknown(connection: sa.Connection, seen: Iterable[Marked]) -> list[Marked]:
    """Return the marks of this cloud that its record can't have written."""
    record = read(connection)
    if not record.cloud_id:
        return []
    ours = [
        one
        for one in seen
        if one.mark.cloud == record.cloud_id
        and one.mark.epoch > record.epoch_settled
        and one.vmid in (None, one.mark.vmid)
    ]
    return [one for one in ours if not _has(connection, record, one)]


def _has(connection: sa.Connection, record: Record, one: Marked) -> bool:
    """Return whether the ledger has the operation that wrote a mark."""
    mark = one.mark
    row = connection.execute(
        sa.select(_O.resource_type, _O.resource_id).where(_O.id == mark.epoch - record.epoch_base)
    ).first()
    if row is None:
        return False
    if mark.resource_type is ResourceType.IMAGE:
        # A template is made by the build of any server.
        return True
    if row.resource_type == ResourceType.SNAPSHOT:
        # The copy that a snapshot is has the mark of a volume.
        return mark.resource_type is ResourceType.VOLUME
    if (row.resource_type, row.resource_id) != (mark.resource_type, mark.resource_id):
        return False
    if mark.resource_type is not ResourceType.SERVER or one.vmid is None:
        return True
    # Before a VM is made its VMID is in the journal.
    return vmids.was_of(connection, one.cluster, one.vmid, mark.resource_id, refused=True)


def look(connection: sa.Connection, seen: Iterable[Marked]) -> bool:
    """Hold everything that destroys if one of the marks proves that the database was restored.

    Return whether it is held since now.
    """
    seen = list(seen)
    if not unknown(connection, seen):
        return False
    record = read(connection, lock=True)
    # Somebody may have decided about these marks until then.
    found = unknown(connection, seen)
    if not found:
        return False
    newest = max(found, key=lambda one: one.mark.epoch)
    if record.held_at is None:
        _hold(connection, record, newest)
        return True
    if newest.mark.epoch > newest_mark(record):
        because = {**(record.held_because or {}), "epoch": newest.mark.epoch}
        connection.execute(cloud_identity.update().values(held_because=because))
    return False


def _hold(connection: sa.Connection, record: Record, newest: Marked) -> None:
    mark = newest.mark
    last = record.compare_operation or last_operation(connection)
    because = {
        "epoch": mark.epoch,
        "record_epoch": record.epoch_base + last,
        "where": newest.what,
        "resource": f"{mark.resource_type} {mark.resource_id}",
    }
    connection.execute(
        cloud_identity.update().values(held_at=clock.utcnow(), held_because=because)
    )
    marked = _only_look(connection, last)
    unknown_vms.doubt(connection)
    LOG.error("%s %d operations were open then: they only look.", sentence(because), marked)


def _only_look(connection: sa.Connection, last: int) -> int:
    """Have all operations that were open only look from now on; return how many."""
    now = clock.utcnow()
    until = now + datetime.timedelta(seconds=pulse.LOOK_SECONDS)
    marked = connection.execute(
        operations.update()
        .where(_O.id <= last, _O.state.in_(OPEN_STATES))
        .values(overslept=True, deadline=until, not_before=None, updated_at=now)
    )
    return marked.rowcount


def newest_mark(record: Record) -> int:
    """Return the highest epoch of the marks for which the record is held."""
    return int((record.held_because or {}).get("epoch", 0))


def release(connection: sa.Connection, highest: int) -> bool:
    """Release what is held; marks up to ``highest`` were decided on.

    Return whether it is: not if a newer mark was seen since.
    """
    record = read(connection, lock=True)
    if newest_mark(record) > highest:
        return False
    last = last_operation(connection)
    newest = record.epoch_base + last
    settled = max(highest, record.epoch_settled, newest)
    if settled > newest:
        # Other conductors name epochs by the former base until they read the record again.
        settled += _LEFT_OUT
    connection.execute(
        cloud_identity.update().values(
            epoch_base=settled - last,
            epoch_settled=settled,
            held_at=None,
            held_because=None,
        )
    )
    return True

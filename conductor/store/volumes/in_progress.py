"""Whether something is under way with a volume, whatever the operation is filed under."""

from __future__ import annotations

import sqlalchemy as sa

from common.states import OPEN_STATES, ResourceType
from common.volumes import ATTACH, DETACH
from conductor.plans import PlugVolumePlan
from conductor.store import operations as ledger
from conductor.store.volumes import attachments
from db.schema import operations, volume_backups


def any_of(connection: sa.Connection, volume_id: str) -> bool:
    """Return whether an operation on a volume is open, on a backup of it, or its attachment."""
    if ledger.open_of(connection, volume_id, ResourceType.VOLUME):
        return True
    return _backs_up(connection, volume_id) or _plugs(connection, volume_id)


def _backs_up(connection: sa.Connection, volume_id: str) -> bool:
    mine = sa.select(volume_backups.c.id).where(volume_backups.c.volume_id == volume_id)
    query = sa.select(operations.c.id).where(
        operations.c.resource_type == ResourceType.BACKUP,
        operations.c.resource_id.in_(mine),
        operations.c.state.in_(OPEN_STATES),
    )
    return connection.execute(query.limit(1)).first() is not None


def _plugs(connection: sa.Connection, volume_id: str) -> bool:
    """Attaching and detaching are filed under the server."""
    attached = attachments.of_volume(connection, volume_id)
    if attached is None:
        return False
    found = (ledger.open_with(connection, attached.server_uuid, one) for one in (ATTACH, DETACH))
    return any(
        one.planned(PlugVolumePlan).volume_id == volume_id for several in found for one in several
    )

"""Whether an operation works on a volume, also an operation of another resource."""

from __future__ import annotations

import sqlalchemy as sa

from common.messages.commands import PlugVolume
from common.resources.states import OPEN_STATES, ResourceType
from common.resources.volumes import ATTACH, DETACH
from conductor.plans import CommandPlan, RebuildPlan
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.volumes import attachments
from db.schema import operations, volume_backups


def any_of(connection: sa.Connection, volume_id: str) -> bool:
    """Return whether an operation on a volume is open, on a backup of it, or on its server."""
    if ledger.open_of(connection, volume_id, ResourceType.VOLUME):
        return True
    return _backs_up(connection, volume_id) or _is_in_operation_of_server(connection, volume_id)


def _backs_up(connection: sa.Connection, volume_id: str) -> bool:
    mine = sa.select(volume_backups.c.id).where(volume_backups.c.volume_id == volume_id)
    query = sa.select(operations.c.id).where(
        operations.c.resource_type == ResourceType.BACKUP,
        operations.c.resource_id.in_(mine),
        operations.c.state.in_(OPEN_STATES),
    )
    return connection.execute(query.limit(1)).first() is not None


def _is_in_operation_of_server(connection: sa.Connection, volume_id: str) -> bool:
    """Attaching and detaching, builds and rebuilds are filed under the server."""
    attached = attachments.of_volume(connection, volume_id)
    if attached is None:
        return False
    actions = (ATTACH, DETACH, "create", "rebuild")
    found = (ledger.open_with(connection, attached.server_uuid, one) for one in actions)
    return any(_concerns(one, volume_id) for several in found for one in several)


def _concerns(operation: Operation, volume_id: str) -> bool:
    """Return whether an operation on a server that has a volume changes that. Pure."""
    plan = operation.plan
    if isinstance(plan, CommandPlan) and isinstance(plan.command, PlugVolume):
        return plan.command.volume_id == volume_id
    if isinstance(plan, RebuildPlan):
        return plan.content is not None and plan.content.volume_id == volume_id
    return True

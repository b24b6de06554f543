"""Gives volumes to other projects: offered with a key, and taken with it, in a transaction each.

The volume's row is locked before its offer's, and before a project's quota. Each is an operation
that has ended at once, so that the ledger says who gave a volume to whom.
"""

from __future__ import annotations

from typing import Any

from common.context import RequestContext
from common.errors import Invalid, NotFound
from common.log import logger
from common.resources.states import OperationState, ResourceType
from common.resources.volumes import SnapshotStatus, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import scope
from conductor.rpc.volumes.transfers import NewVolumeTransfer, OfferedVolume, new_key
from conductor.store import call_answers
from conductor.store.ledger import operations as ledger
from conductor.store.quotas import volume_quotas
from conductor.store.transactions import Transaction
from conductor.store.volumes import snapshots, transfers, types, volumes

LOG = logger(__name__)


def offer(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, new: NewVolumeTransfer
) -> OfferedVolume:
    """Offer a volume of the project, which nothing else is done with from now on.

    Raises VolumeNotFound, Invalid (its status, or a snapshot's).
    """
    row = volumes.locked(connection, new.volume_id, scope(ctxt))
    if row.status != VolumeStatus.AVAILABLE:
        raise Invalid("Invalid volume: status must be available")
    if not new.no_snapshots:
        _given(connection, row)
    snapshots.require_alone(connection, row)
    drawn = "" if new.auth_key else new_key()
    transfer_id = transfers.insert(connection, row, new, new.auth_key or drawn)
    volumes.change(connection, row.id, status=VolumeStatus.AWAITING_TRANSFER)
    _write_down(connection, cloud, ctxt, VolumeAction.OFFER, row.id, row.project_id)
    LOG.info("Volume %s is offered by transfer %s.", row.id, transfer_id)
    call_answers.note(connection, OfferedVolume(transfer_id, ""))
    return OfferedVolume(transfer_id, drawn)


def accept(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, transfer_id: str, auth_key: str
) -> None:
    """Make a volume that is offered the project's, with its snapshots if they are offered, too.

    What it uses counts as the project's from now on. Raises NotFound, Invalid (the key, the
    volume's or a snapshot's status), QuotaExceeded.
    """
    if not ctxt.project_id:
        raise Invalid("Invalid input received: volumes belong to projects: name one.")
    found = transfers.get(connection, transfer_id)
    if found is None:
        raise _missing(transfer_id)
    if not transfers.opens(found, auth_key):
        LOG.warning("Transfer %s was asked for with a wrong key.", transfer_id)
        raise Invalid(
            f"Invalid auth key: Attempt to transfer {transfer_id} with invalid auth key."
        )
    row, _ = _locked(connection, found)
    if row is None or row.status != VolumeStatus.AWAITING_TRANSFER:
        raise Invalid(
            f"Invalid volume: Transfer {transfer_id}: Volume id {found.volume_id} expected in "
            "awaiting-transfer state."
        )
    _take(connection, cloud, ctxt, row, with_snapshots=not found.no_snapshots)
    transfers.end(connection, transfer_id, accepted_by=ctxt.project_id)
    _write_down(connection, cloud, ctxt, VolumeAction.ACCEPT, row.id, ctxt.project_id)
    LOG.info("Volume %s is project %s's by transfer %s.", row.id, ctxt.project_id, transfer_id)


def withdraw(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, transfer_id: str
) -> None:
    """End an offer of the project; its volume is available again. Raises NotFound."""
    found = transfers.get(connection, transfer_id)
    if found is None or scope(ctxt) not in (None, found.source_project_id):
        raise _missing(transfer_id)
    row, found = _locked(connection, found)
    transfers.end(connection, transfer_id)
    if row is None:
        return
    if row.status == VolumeStatus.AWAITING_TRANSFER:
        volumes.change(connection, row.id, status=VolumeStatus.AVAILABLE)
    _write_down(connection, cloud, ctxt, VolumeAction.WITHDRAW, row.id, row.project_id)


def _locked(connection: Transaction, found: Any) -> tuple[Any | None, Any]:
    """Return the rows of an offer's volume and of the offer, locked.

    Raises NotFound for an offer that has ended since it was read.
    """
    volume = volumes.held(connection, found.volume_id)
    again = transfers.get(connection, found.id, lock=True)
    if again is None:
        raise _missing(found.id)
    return volume, again


def _take(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, *, with_snapshots: bool
) -> None:
    """Give a locked volume to the project of the context, and count it there."""
    project, owner = str(ctxt.project_id), {"user_id": str(ctxt.user_id)}
    owner["project_id"] = project
    type_ = None if row.type_id is None else types.get(connection, row.type_id)
    type_name = None if type_ is None else str(type_.name)
    taken = _given(connection, row) if with_snapshots else []
    if row.project_id != project:
        wanted = {"volumes": 1, "gigabytes": row.size_gib}
        volume_quotas.take(connection, project, cloud.conf, wanted, type_name, row.size_gib)
    volumes.change(connection, row.id, status=VolumeStatus.AVAILABLE, **owner)
    # The volume counts by now: its snapshots come on top of it.
    theirs = [one for one in taken if one.project_id != project]
    if theirs:
        more = {"snapshots": len(theirs), "gigabytes": sum(one.size_gib for one in theirs)}
        volume_quotas.take(connection, project, cloud.conf, more, type_name, 0)
    for one in taken:
        snapshots.change(connection, one.id, **owner)


def _given(connection: Transaction, row: Any) -> list[Any]:
    """Return the snapshots that go along with a volume that is locked. Raises Invalid.

    Those that an earlier giver kept stay.
    """
    every = snapshots.of_volume(connection, row.id)
    given = [one for one in every if one.project_id == row.project_id]
    for one in given:
        if one.status != SnapshotStatus.AVAILABLE:
            raise Invalid(f"Invalid snapshot: snapshot: {one.id} status must be available")
    return given


def _missing(transfer_id: str) -> NotFound:
    return NotFound(f"Transfer {transfer_id} could not be found.")


def _write_down(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    action: VolumeAction,
    volume_id: str,
    project_id: str,
) -> None:
    """Write an operation of the project that has ended well."""
    item = start.new(cloud, action, (ResourceType.VOLUME, volume_id), project_id)
    operation = ledger.insert(connection, ctxt, [item])[0]
    ledger.close(connection, operation.id, OperationState.DONE)

"""The volumes that are made with a server: begun once its host is chosen, on a storage that the
host reaches; replaced by new ones if another host is chosen; removed if the build fails.

The build waits for them without a lease. What ends the making of one makes the build due, in the
same transaction (``conductor.volumes.build_waiting_for_volume``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.context import RequestContext
from common.failures import Verdict, verdict_of
from common.messages.reports import Category, Failure
from common.resources.states import ResourceType
from common.resources.volumes import VolumeStatus
from conductor.cloud import Cloud
from conductor.rpc.volumes.volumes import NewVolume
from conductor.store.ledger import operations as ledger
from conductor.store.servers.vmids import BandExhausted
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, backends, types, volumes
from conductor.volumes import create_volume, release, sources, storage_choice

#: what a volume is that is not made yet
_MAKING = (VolumeStatus.CREATING, VolumeStatus.DOWNLOADING)
#: verdicts that say nothing of the build: its own VMID, or a wait that the volume has had
_NOT_THE_BUILD_S = frozenset({Verdict.WAIT, Verdict.AWAIT_HOST, Verdict.QUARANTINE})


class NoPlaceError(Exception):
    """The host reaches no storage that would do; the text says why."""


@dataclass(frozen=True)
class Progress:
    """How far the volumes of a server are."""

    unbegun: tuple[Any, ...] = ()
    """Rows of those that have no place yet."""
    making: bool = False
    """Whether some are being made."""
    failure: Failure | None = None
    """Why one could not be made."""


def progress(connection: Transaction, server_uuid: str) -> Progress:
    """Return how far the volumes are that are made with a server; their rows stay locked."""
    unbegun, making = [], False
    for row in _made_with(connection, server_uuid):
        if row.status in _MAKING and row.vmid is None:
            unbegun.append(row)
        elif row.status in _MAKING:
            making = True
        elif row.status != VolumeStatus.ATTACHING:
            return Progress(failure=_failure(connection, row))
    return Progress(tuple(unbegun), making)


def _made_with(connection: Transaction, server_uuid: str) -> list[Any]:
    mine = attachments.of_servers(connection, [server_uuid])
    found = [volumes.held(connection, one.volume_id) for one in mine if one.with_build]
    return [row for row in found if row is not None]


def _failure(connection: Transaction, row: Any) -> Failure:
    """Return why a volume could not be made, as the build's own failure."""
    found = ledger.last_fault(connection, row.id, ResourceType.VOLUME)
    if found is None:
        found = Failure(Category.CREATION_FAILED, row.fault or f"It is {row.status}.")
    verdict = verdict_of(found)
    return dataclasses.replace(
        found,
        message=f"Volume {row.id} could not be made: {found.message}",
        verdict=(Verdict.OTHER_HOST if verdict in _NOT_THE_BUILD_S else verdict).value,
    )


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, rows: Sequence[Any], host: str
) -> None:
    """Begin to make volumes, whose rows are locked, on storages that a host reaches.

    Raises NoPlaceError; then nothing may be committed.
    """
    every = backends.read(connection)
    reached = [one for one in every if one.host == host]
    pools = {one.pool for one in reached}
    for row in rows:
        new = NewVolume(
            row.project_id,
            row.size_gib,
            image_id=row.image_id,
            snapshot_id=row.snapshot_id,
            source_volume_id=row.source_volume_id,
        )
        found = sources.find(connection, new)
        type_ = None if row.type_id is None else types.get(connection, row.type_id)
        storage = types.storage_of(type_) or found.placement.storage
        placement = dataclasses.replace(
            found.placement, size_gib=row.size_gib, storage=storage, specs=types.specs_of(type_)
        )
        copied = [one for one in every if one.pool in pools]
        among = reached if placement.on is None else copied
        place = storage_choice.choose(among, backends.promised(connection), placement)
        if isinstance(place, str):
            raise NoPlaceError(place)
        try:
            create_volume.make(connection, cloud, ctxt, row.id, new, found, place)
        except BandExhausted as error:
            raise NoPlaceError(error.message) from error


def renew(connection: Transaction, cloud: Cloud, server_uuid: str) -> None:
    """Replace the volumes by new records, to be made on the next host; remove what was made.

    Each gets another ID, so no volume ever has two places. The server's row must be locked.
    """
    for one in attachments.of_servers(connection, [server_uuid]):
        row = volumes.held(connection, one.volume_id) if one.with_build else None
        if row is None or (row.status in _MAKING and row.vmid is None):
            continue
        attachments.delete(connection, row.id, server_uuid)
        attachments.insert(
            connection,
            volumes.again(connection, row),
            server_uuid,
            one.project_id,
            one.slot,
            mode=one.mode,
            tag=one.tag,
            delete_on_termination=one.delete_on_termination,
            with_build=True,
        )
        release.discard(connection, cloud, row)

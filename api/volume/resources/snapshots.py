"""`/snapshots`: snapshots of volumes, their metadata and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import queries, schemas, views
from api.volume.call import Call, operation, the
from api.volume.resources.volumes import edit_of, find, trimmed, truth
from common.errors import Invalid, SnapshotNotFound
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from db.reads.volumes import snapshots
from db.reads.volumes.snapshots import Snapshot

#: the version from which an attached volume needs no ``force`` (cinder, SNAPSHOT_IN_USE)
_IN_USE_SINCE = 66


def find_snapshot(call: Call, snapshot_id: str) -> Snapshot:
    """Return a snapshot that the user sees. Raises SnapshotNotFound."""
    found = call.read(snapshots.get, snapshot_id, call.reach)
    if found is None:
        raise SnapshotNotFound(f"Snapshot {snapshot_id} could not be found.")
    return found


the_snapshot = the("snapshot", find_snapshot)
_LISTING = queries.Listing(
    snapshots.listing, snapshots.count, snapshots.SORTABLE, queries.snapshots
)


class Snapshots:
    """Snapshots of volumes."""

    @operation("volume:get_all_snapshots")
    def index(self, call: Call) -> Any:
        """List snapshots."""
        return _LISTING.answer(call, "snapshots", views.brief_snapshot)

    @operation("volume:get_all_snapshots")
    def detail(self, call: Call) -> Any:
        """List snapshots in detail."""
        return _LISTING.answer(call, "snapshots/detail", views.detailed_snapshot)

    @operation(
        "volume:get_snapshot",
        asks=("volume_extension:extended_snapshot_attributes",),
        on=the_snapshot,
    )
    def show(self, call: Call, snapshot: Snapshot) -> Any:
        """Show a snapshot."""
        return {"snapshot": views.detailed_snapshot(call, snapshot)}

    @operation(asks=("volume:create_snapshot",), status=202, body=schemas.CREATE_SNAPSHOT)
    def create(self, call: Call) -> Any:
        """Take a snapshot."""
        asked = call.body["snapshot"]
        found = find(call, asked["volume_id"], "volume:create_snapshot")
        new = NewVolumeSnapshot(
            found.id,
            name=trimmed(asked.get("name") or asked.get("display_name")) or "",
            description=trimmed(asked.get("description")),
            metadata=asked.get("metadata") or {},
            in_use=_in_use(call, asked),
        )
        made = call.conductor.create_volume_snapshot(call.ctxt, new)
        return {"snapshot": views.snapshot(call, find_snapshot(call, made))}

    @operation("volume:update_snapshot", body=schemas.UPDATE_SNAPSHOT, on=the_snapshot)
    def update(self, call: Call, snapshot: Snapshot) -> Any:
        """Rename or describe a snapshot."""
        edit = edit_of(call.body["snapshot"])
        call.conductor.edit_volume_snapshot(call.ctxt, snapshot.id, edit)
        return {"snapshot": views.snapshot(call, find_snapshot(call, snapshot.id))}

    @operation("volume:delete_snapshot", status=202, on=the_snapshot)
    def delete(self, call: Call, snapshot: Snapshot) -> None:
        """Delete a snapshot."""
        call.conductor.delete_volume_snapshot(call.ctxt, snapshot.id)

    @operation(
        "volume_extension:snapshot_admin_actions:reset_status",
        status=202,
        body=schemas.RESET_SNAPSHOT,
        on=the_snapshot,
    )
    def reset_status(self, call: Call, snapshot: Snapshot) -> None:
        """Say what a snapshot is."""
        status = call.body["os-reset_status"]["status"].lower()
        call.conductor.reset_volume_snapshot(call.ctxt, snapshot.id, status)

    @operation("volume_extension:snapshot_admin_actions:force_delete", status=202, on=the_snapshot)
    def force_delete(self, call: Call, snapshot: Snapshot) -> None:
        """Delete a snapshot, as an administrator."""
        call.conductor.delete_volume_snapshot(call.ctxt, snapshot.id)

    @operation("volume:get_snapshot", on=the_snapshot)
    def refuse(self, call: Call, snapshot: Snapshot) -> None:
        """Refuse an action that isn't supported."""
        raise Invalid(f"{next(iter(call.body))} is not done here.")


def _in_use(call: Call, asked: Mapping[str, Any]) -> bool:
    """Return whether the volume may be attached to a server. Raises Invalid."""
    force = asked.get("force")
    wanted = truth(force)
    if call.version < _IN_USE_SINCE:
        return wanted
    if force is not None and not wanted:
        raise Invalid(
            "Invalid value for 'force'. Since microversion 3.66 it is deprecated: only True is "
            "accepted, which is the default behavior."
        )
    return True


SNAPSHOT_ACTIONS: Mapping[str, str] = {
    "os-reset_status": "reset_status",
    "os-force_delete": "force_delete",
    "os-update_snapshot_status": "refuse",
    "os-unmanage": "refuse",
}

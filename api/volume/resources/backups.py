"""`/backups`: backups of volumes, and restoring them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import queries, schemas, views
from api.volume.call import Call, operation, the
from api.volume.resources.volumes import edit_of, find, trimmed, truth
from common.errors import BackupNotFound, Invalid
from conductor.rpc.volumes.backups import NewBackup
from db.reads.volumes import backups
from db.reads.volumes.backups import Backup

#: versions: metadata, the availability zone
_METADATA, _ZONE = 43, 51


def find_backup(call: Call, backup_id: str) -> Backup:
    """Return a backup that the user sees. Raises BackupNotFound."""
    found = call.read(backups.get, backup_id, call.reach)
    if found is None:
        raise BackupNotFound(f"Backup {backup_id} could not be found.")
    return found


the_backup = the("backup", find_backup)
_LISTING = queries.Listing(backups.listing, backups.count, backups.SORTABLE, queries.backups)


class Backups:
    """Backups of volumes."""

    @operation("backup:get_all")
    def index(self, call: Call) -> Any:
        """List backups."""
        return _LISTING.answer(call, "backups", views.brief_backup)

    @operation("backup:get_all")
    def detail(self, call: Call) -> Any:
        """List backups in detail."""
        return _LISTING.answer(call, "backups/detail", views.backup)

    @operation("backup:get", asks=("backup:backup_project_attribute",), on=the_backup)
    def show(self, call: Call, backup: Backup) -> Any:
        """Show a backup."""
        return {"backup": views.backup(call, backup)}

    @operation("backup:create", status=202, body=schemas.CREATE_BACKUP)
    def create(self, call: Call) -> Any:
        """Back a volume up that no server has."""
        asked = call.body["backup"]
        found = find(call, asked["volume_id"], "backup:create")
        new = NewBackup(
            found.id,
            name=trimmed(asked.get("name")) or "",
            description=trimmed(asked.get("description")),
            metadata=asked.get("metadata") or {},
            container=asked.get("container"),
            availability_zone=asked.get("availability_zone"),
            snapshot_id=asked.get("snapshot_id"),
            incremental=truth(asked.get("incremental", False)),
            force=truth(asked.get("force", False)),
        )
        made = call.conductor.create_backup(call.ctxt, new)
        return {"backup": views.brief_backup(call, find_backup(call, made))}

    @operation("backup:update", since="3.9", body=schemas.UPDATE_BACKUP, on=the_backup)
    def update(self, call: Call, backup: Backup) -> Any:
        """Rename or describe a backup."""
        edit = edit_of(call.body["backup"] or {})
        call.conductor.edit_backup(call.ctxt, backup.id, edit)
        return {"backup": views.brief_backup(call, find_backup(call, backup.id))}

    @operation("backup:delete", status=202, on=the_backup)
    def delete(self, call: Call, backup: Backup) -> None:
        """Delete a backup."""
        call.conductor.delete_backup(call.ctxt, backup.id)

    @operation("backup:restore", status=202, body=schemas.RESTORE, on=the_backup)
    def restore(self, call: Call, backup: Backup) -> Any:
        """Restore a backup into a new volume, or over the content of an existing volume."""
        asked = call.body["restore"] or {}
        volume_id = asked.get("volume_id")
        if volume_id is not None:
            find(call, volume_id)
        volume_id = call.conductor.restore_backup(
            call.ctxt, backup.id, volume_id, asked.get("name")
        )
        name = find(call, volume_id).name
        return {"restore": {"backup_id": backup.id, "volume_id": volume_id, "volume_name": name}}

    @operation("backup:export-import", on=the_backup)
    def export(self, call: Call, backup: Backup) -> None:
        """Refuse: an archive can't be described to another cloud."""
        raise Invalid("Invalid backup: Records of backups can't be exported here.")

    @operation("backup:backup-import", body=schemas.IMPORT_BACKUP)
    def import_record(self, call: Call) -> None:
        """Refuse, as ``export`` does."""
        raise Invalid("Invalid backup: Records of backups can't be imported here.")

    @operation(
        "volume_extension:backup_admin_actions:reset_status",
        status=202,
        body=schemas.RESET_BACKUP,
        on=the_backup,
    )
    def reset_status(self, call: Call, backup: Backup) -> None:
        """Say what a backup is."""
        status = call.body["os-reset_status"]["status"].lower()
        call.conductor.reset_backup(call.ctxt, backup.id, status)

    @operation("volume_extension:backup_admin_actions:force_delete", status=202, on=the_backup)
    def force_delete(self, call: Call, backup: Backup) -> None:
        """Delete a backup in more states."""
        call.conductor.delete_backup(call.ctxt, backup.id, force=True)


BACKUP_ACTIONS: Mapping[str, str] = {
    "os-reset_status": "reset_status",
    "os-force_delete": "force_delete",
}

"""`/backups`: backups of volumes, and restoring them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import queries, schemas, views
from api.volume.call import Call, operation
from api.volume.resources.volumes import edit_of, find, trimmed, truth
from common.errors import BackupNotFound, Invalid
from conductor.rpc.volumes.backups import NewBackup
from db.reads.volumes import backups
from db.reads.volumes.backups import Backup
from web.guard import Params

#: versions: metadata, the availability zone
_METADATA, _ZONE = 43, 51


def _own(call: Call, _: Params) -> Mapping[str, Any]:
    return {"project_id": call.project}


def find_backup(call: Call, backup_id: str, rule: str | None = None) -> Backup:
    """Return a backup that the user may do this to. Raises BackupNotFound, Forbidden."""
    found = call.read(backups.get, backup_id, call.reach)
    if found is None:
        raise BackupNotFound(f"Backup {backup_id} could not be found.")
    if rule is not None:
        call.check(rule, {"project_id": found.project_id})
    return found


class Backups:
    """Backups of volumes."""

    @operation("backup:get_all")
    def index(self, call: Call) -> Any:
        """List backups."""
        return self._listed(call, "backups", views.brief_backup)

    @operation("backup:get_all")
    def detail(self, call: Call) -> Any:
        """List backups in detail."""
        return self._listed(call, "backups/detail", views.backup)

    @staticmethod
    def _listed(call: Call, path: str, view: Any) -> Any:
        page, offset = queries.page(call)
        wanted = queries.backups(call)
        order = queries.order(call, backups.SORTABLE)
        found = call.read(backups.listing, wanted, order, page, offset)
        answer: dict[str, Any] = {"backups": [view(call, one) for one in found]}
        if found and len(found) == page.limit:
            answer["backups_links"] = queries.following(call, path, found[-1].id)
        if call.version >= 45 and call.query.boolean("with_count"):
            answer["count"] = call.read(backups.count, wanted)
        return answer

    @operation()
    def show(self, call: Call, backup_id: str) -> Any:
        """Show a backup."""
        return {"backup": views.backup(call, find_backup(call, backup_id, "backup:get"))}

    @operation("backup:create", status=202, body=schemas.CREATE_BACKUP, on=_own)
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

    @operation(since="3.9", body=schemas.UPDATE_BACKUP)
    def update(self, call: Call, backup_id: str) -> Any:
        """Rename or describe a backup."""
        find_backup(call, backup_id, "backup:update")
        edit = edit_of(call.body["backup"] or {})
        call.conductor.edit_backup(call.ctxt, backup_id, edit)
        return {"backup": views.brief_backup(call, find_backup(call, backup_id))}

    @operation(status=202)
    def delete(self, call: Call, backup_id: str) -> None:
        """Delete a backup."""
        find_backup(call, backup_id, "backup:delete")
        call.conductor.delete_backup(call.ctxt, backup_id)

    @operation(status=202, body=schemas.RESTORE)
    def restore(self, call: Call, backup_id: str) -> Any:
        """Restore a backup into a new volume, or over the content of an existing volume."""
        find_backup(call, backup_id, "backup:restore")
        asked = call.body["restore"] or {}
        volume_id = asked.get("volume_id")
        if volume_id is not None:
            find(call, volume_id)
        volume_id = call.conductor.restore_backup(
            call.ctxt, backup_id, volume_id, asked.get("name")
        )
        name = find(call, volume_id).name
        return {"restore": {"backup_id": backup_id, "volume_id": volume_id, "volume_name": name}}

    @operation()
    def export(self, call: Call, backup_id: str) -> None:
        """Refuse: an archive can't be described to another cloud."""
        find_backup(call, backup_id, "backup:export-import")
        raise Invalid("Invalid backup: Records of backups can't be exported here.")

    @operation("backup:backup-import", body=schemas.IMPORT_BACKUP)
    def import_record(self, call: Call) -> None:
        """Refuse, as ``export`` does."""
        raise Invalid("Invalid backup: Records of backups can't be imported here.")

    @operation(status=202, body=schemas.RESET_BACKUP)
    def reset_status(self, call: Call, backup_id: str) -> None:
        """Say what a backup is."""
        rule = "volume_extension:backup_admin_actions:reset_status"
        find_backup(call, backup_id, rule)
        status = call.body["os-reset_status"]["status"].lower()
        call.conductor.reset_backup(call.ctxt, backup_id, status)

    @operation(status=202)
    def force_delete(self, call: Call, backup_id: str) -> None:
        """Delete a backup in more states."""
        rule = "volume_extension:backup_admin_actions:force_delete"
        find_backup(call, backup_id, rule)
        call.conductor.delete_backup(call.ctxt, backup_id, force=True)


BACKUPS = Backups()
BACKUP_ACTIONS: Mapping[str, Any] = {
    "os-reset_status": BACKUPS.reset_status,
    "os-force_delete": BACKUPS.force_delete,
}

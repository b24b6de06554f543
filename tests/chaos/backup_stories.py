"""Stories of backups: none is lost, none is left, and a volume has what it had or was saved."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from conductor.messages import NewBackup
from db import schema
from tests.chaos.volume_stories import PATTERN, CreateVolume

LATER = "written later"
REST = frozenset({"available", "error", "error_deleting", "error_restoring"})


class BackUp(CreateVolume):
    """A volume is backed up."""

    def prepare(self) -> None:
        """See ``Story``."""
        self.there()

    def there(self) -> None:
        """See ``CreateVolume``: it is the volume that must be there."""
        self._create()
        self.stage.until(self._is_made)
        self._write(PATTERN)

    def _is_made(self) -> bool:
        row = self.row()
        made = row is not None and row.status == "available"
        return made and not self.stage.open_operations()

    def _write(self, text: str) -> None:
        row, cluster = self.row(), self.stage.simulator.cluster()
        with cluster.turn():
            volume = cluster.volume(row.volid, row.node)
            assert volume is not None
            volume.data = text
            cluster.add_volume(volume)

    def act(self) -> None:
        """See ``Story``."""
        self._back_up()

    def _back_up(self) -> None:
        new, context = NewBackup(self.row().id, self.name), self.stage.context()
        self.asked("create_backup", lambda: self.stage.client.create_backup(context, new))

    def backup(self) -> Any:
        """The backup's row; None: there is none."""
        query = sa.select(schema.volume_backups).where(schema.volume_backups.c.name == self.name)
        return next(iter(self.stage.rows(query)), None)

    def state(self) -> str:
        """See ``Story``: the backup's, once the volume is at rest."""
        volume, row = self.row(), self.backup()
        if volume is not None and volume.status not in REST:
            return ""
        status = "none" if row is None else str(row.status)
        return status if status in REST or status == "none" else ""

    def data(self) -> str | None:
        """See ``CreateVolume``."""
        return PATTERN

    def wrong(self) -> str:
        """See ``Story``: with the archives, which must be those of the record."""
        return "; ".join(one for one in (super().wrong(), *self._archives_differ()) if one)

    def _archives_differ(self) -> list[str]:
        row = self.backup()
        known = set() if row is None or row.archive is None else {row.archive}
        volumes = self.stage.simulator.state()["sim1"]["volumes"]
        there = {one["volid"] for one in volumes if one["content"] == "backup"}
        mine = {one for one in there if self._is_mine(one)}
        return [] if mine == known else [f"archives {sorted(mine)}, record {sorted(known)}"]

    def _is_mine(self, volid: str) -> bool:
        vmids = {one.vmid for one in (self.row(), self.backup()) if one is not None}
        return any(f"vzdump-qemu-{vmid}-" in volid for vmid in vmids)

    def saved(self) -> None:
        """Have the backup made, and something else in the volume afterwards."""
        self._back_up()
        self.stage.until(lambda: self.state() == "available" and not self.stage.open_operations())
        self._write(LATER)

    def remove(self) -> str:
        """See ``Story``: the backup first, then the volume."""
        self.until_gone(lambda: self.backup() is None, self._delete_backup)
        return super().remove()

    def _delete_backup(self) -> None:
        row = self.backup()
        if row is not None:
            self.stage.client.delete_backup(self.stage.context(), row.id, force=True)


class Restore(BackUp):
    """A backup is restored in place of what its volume has."""

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.saved()

    def act(self) -> None:
        """See ``Story``."""
        backup_id, volume_id, context = self.backup().id, self.row().id, self.stage.context()
        client = self.stage.client
        self.asked(
            "restore_backup", lambda: client.restore_backup(context, backup_id, volume_id, None)
        )

    def data(self) -> str | None:
        """See ``CreateVolume``: what was saved, or what the volume had before, and whole."""
        row = self.row()
        volume = None if row is None or row.volid is None else self.volume(row)
        has = None if volume is None else str(volume["data"])
        return has if has in (PATTERN, LATER) else PATTERN


class DeleteBackup(BackUp):
    """A backup is deleted; its volume stays as it is."""

    good = "none"

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.saved()

    def act(self) -> None:
        """See ``Story``."""
        backup_id, context = self.backup().id, self.stage.context()
        self.asked("delete_backup", lambda: self.stage.client.delete_backup(context, backup_id))

    def data(self) -> str | None:
        """See ``CreateVolume``."""
        return LATER

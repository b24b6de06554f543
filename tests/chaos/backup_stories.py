"""Stories of backups: none is lost, none is left, and a volume has what it had or was saved."""

from __future__ import annotations

import contextlib
from typing import Any

import sqlalchemy as sa

from common.errors import MicronovaError
from common.resources.volumes import BackupStatus
from conductor.rpc.volumes.backups import NewBackup
from db import schema
from tests.chaos.volume_story import LATER, PATTERN, Made

_REST = frozenset({BackupStatus.AVAILABLE, BackupStatus.ERROR, BackupStatus.ERROR_DELETING})


class BackUp(Made):
    """A volume is backed up."""

    def act(self) -> None:
        """See ``Story``."""
        self.back_up()

    def back_up(self) -> None:
        """Ask for a backup of the volume."""
        new, context = NewBackup(self.row().id, self.name), self.stage.context()
        self.asked("create_backup", lambda: self.stage.client.create_backup(context, new))

    def backups(self) -> list[Any]:
        """Rows of all backups: a run begins where there are none."""
        return list(self.stage.rows(sa.select(schema.volume_backups)))

    def backup(self) -> Any:
        """The row of the one backup; None: there is none."""
        return next(iter(self.backups()), None)

    def state(self) -> str:
        """See ``Story``: the backup's, once the volume is at rest."""
        volume, row = self.row(), self.backup()
        if volume is not None and not self.status(volume):
            return ""
        if row is None:
            return "none"
        return str(row.status) if row.status in _REST else ""

    def wrong(self) -> str:
        """See ``Story``: an archive has what the volume had when it was backed up."""
        return "; ".join(filter(None, (super().wrong(), *self._archives_differ())))

    def _archives_differ(self) -> list[str]:
        recorded = [row.archive for row in self.backups() if row.archive is not None]
        there = {
            one["volid"]: list(one["kept"].values())
            for one in self.stage.simulator.state()["sim1"]["volumes"]
            if one["content"] == "backup"
        }
        if sorted(recorded) != sorted(there):
            return [f"archives are {sorted(there)}, by the record {sorted(recorded)}"]
        return [f"{volid} has {has}" for volid, has in there.items() if has != [PATTERN]]

    def saved(self) -> None:
        """Have the volume backed up, and something else written to it afterwards."""
        self.back_up()
        self.rest(lambda: self.backup().status == BackupStatus.AVAILABLE)
        self.write(self.row().volid, LATER)

    def remove(self) -> str:
        """See ``Story``: backups first."""
        self.until_gone(lambda: not self.backups(), self._delete_backups)
        return super().remove()

    def _delete_backups(self) -> None:
        """An administrator forces what is in error because of what was struck."""
        for row in self.backups():
            with contextlib.suppress(MicronovaError):
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

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``: what was saved, if it was restored."""
        return PATTERN if self.operations("restore-backup")[-1:] == ["done"] else LATER

    def wrong(self) -> str:
        """See ``Story``: whatever became of it, the backup can be restored again."""
        row = self.backup()
        bad = "" if row is None or row.status == "available" else f"the backup is {row.status}"
        return "; ".join(filter(None, (super().wrong(), bad)))


class DeleteBackup(BackUp):
    """A backup is deleted; its volume does not change."""

    good = "none"

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.saved()

    def act(self) -> None:
        """See ``Story``."""
        backup_id, context = self.backup().id, self.stage.context()
        self.asked("delete_backup", lambda: self.stage.client.delete_backup(context, backup_id))

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``."""
        return LATER

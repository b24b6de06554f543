"""Stories of snapshots: each holds the data of its time, and may be deleted with its volume."""

from __future__ import annotations

from typing import Any

from conductor.rpc.volumes.volumes import NewVolume
from tests.chaos.dressing import COPYING, THIN
from tests.chaos.volume_stories import Attach
from tests.chaos.volume_story import LATER, PATTERN, Made


class Snap(Made):
    """A snapshot is taken inside of the volume's file."""

    def act(self) -> None:
        """See ``Story``."""
        self.take()

    def state(self) -> str:
        """See ``Story``: the snapshot's."""
        row = self.snapshot()
        status = "none" if row is None else str(row.status)
        return "" if status in ("creating", "deleting") else status


class SnapAsCopy(Snap):
    """A snapshot is a copy with a holder of its own."""

    storage = COPYING


class SnapAttached(Attach, Snap):
    """A snapshot is taken by the storage while a server that runs has the volume."""

    storage = THIN
    good = "available"

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.attached()

    def act(self) -> None:
        """See ``Story``."""
        self.take()

    def state(self) -> str:
        """See ``Story``."""
        return Snap.state(self)


class _WithSnapshot(Made):
    """Something is done with a volume that has a snapshot."""

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.snapped()


class DeleteSnapshot(_WithSnapshot, Snap):
    """A snapshot inside of the volume's file is deleted."""

    good = "none"

    def act(self) -> None:
        """See ``Story``."""
        context, client, row = self.stage.context(), self.stage.client, self.snapshot()
        self.asked(
            "delete_volume_snapshot", lambda: client.delete_volume_snapshot(context, row.id)
        )


class DeleteCopy(DeleteSnapshot):
    """A snapshot that is a copy is deleted."""

    storage = COPYING


class Revert(_WithSnapshot):
    """A volume is brought back to its snapshot."""

    def prepare(self) -> None:
        """See ``Story``: something else is written after the snapshot."""
        super().prepare()
        self.write(self.row().volid, LATER)

    def act(self) -> None:
        """See ``Story``."""
        context, client = self.stage.context(), self.stage.client
        row, snapshot = self.row(), self.snapshot()
        self.asked("revert_volume", lambda: client.revert_volume(context, row.id, snapshot.id))

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``: if it was brought back, that of the snapshot."""
        states = self.operations("revert-volume")
        if states[-1:] == ["done"]:
            return PATTERN
        # In error it may be either.
        return None if states else LATER


class RevertThin(Revert):
    """A volume is brought back by its storage."""

    storage = THIN


class Cascade(_WithSnapshot):
    """A volume is deleted with its snapshot."""

    good = "none"

    def act(self) -> None:
        """See ``Story``."""
        context, client, row = self.stage.context(), self.stage.client, self.row()
        self.asked("delete_volume", lambda: client.delete_volume(context, row.id, cascade=True))


class CascadeCopy(Cascade):
    """A volume is deleted with a snapshot that is a copy."""

    storage = COPYING


class _Copies(Made):
    """A second volume is made of what there is."""

    def act(self) -> None:
        """See ``Story``."""
        self.make(self.source())

    def source(self) -> NewVolume:
        """What the second volume is made of."""
        raise NotImplementedError

    def state(self) -> str:
        """See ``Story``: that of the second volume."""
        return self.status(self.named(self.copy_name))

    @property
    def copy_name(self) -> str:
        """The second volume's name."""
        return f"{self.name}-copy"

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``: what could not be copied may have anything in it."""
        whole = row.name != self.copy_name or row.status == "available"
        return PATTERN if whole else None


class CopyVolume(_Copies):
    """A volume is made of another one."""

    def source(self) -> NewVolume:
        """See ``_Copies``."""
        return self.new(self.copy_name, source_volume_id=self.row().id)


class CopySnapshot(_Copies):
    """A volume is made of a snapshot, which is inside of a file."""

    def prepare(self) -> None:
        """See ``Story``: something else is written after the snapshot."""
        super().prepare()
        self.snapped()
        self.write(self.row().volid, LATER)

    def source(self) -> NewVolume:
        """See ``_Copies``."""
        return self.new(self.copy_name, 2, snapshot_id=self.snapshot().id)

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``."""
        return LATER if row.name == self.name else super().data(row)


class CopyOfCopy(CopySnapshot):
    """A volume is made of a snapshot that is a copy."""

    storage = COPYING

"""What stories of volumes share: how one is made, what must hold of all, and how all go."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common.errors import MicronovaError
from common.resources.volumes import SnapshotStatus
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import NewVolume
from db import schema
from tests.chaos.cloud import IMAGE
from tests.chaos.dressing import COPYING, THIN, add_volume_storages
from tests.chaos.stage import Party
from tests.chaos.story import Story

GIB = 1 << 30
PATTERN = "a pattern"
LATER = "what was written later"
OF_IMAGE = f"image {IMAGE}.qcow2"
#: statuses in which nothing is under way
REST = frozenset(
    {"available", "in-use", "reserved", "error"}
    | {"error_deleting", "error_extending", "error_restoring"}
)
_TO_ADD = frozenset({THIN, COPYING})


class VolumeStory(Story):
    """One volume is named as the story; whatever else a run makes is the story's as well."""

    parties: tuple[Party, ...] = (Party.HOLDER,)
    movable = True
    storage: str | None = None
    """The storage of its volumes' type; None: the default type's."""

    # --- looking

    def row(self) -> Any:
        """The volume's row; None: there is none."""
        return self.named(self.name)

    def named(self, name: str) -> Any:
        """The row of the volume of this name; None: there is none."""
        return next((one for one in self.volumes() if one.name == name), None)

    def volumes(self) -> Sequence[Any]:
        """Rows of all volumes: a run begins where there are none."""
        return self.stage.rows(sa.select(schema.volumes))

    def snapshots(self) -> Sequence[Any]:
        """Rows of all snapshots."""
        return self.stage.rows(sa.select(schema.volume_snapshots))

    def snapshot(self) -> Any:
        """The row of the one snapshot; None: there is none."""
        return next(iter(self.snapshots()), None)

    def status(self, row: Any) -> str:
        """Its status once nothing is under way; ``none`` where there is no such volume."""
        status = "none" if row is None else str(row.status)
        return status if status in REST or status == "none" else ""

    def state(self) -> str:
        """See ``Story``."""
        return self.status(self.row())

    # --- what must hold

    def wrong(self) -> str:
        """See ``Story``. The cloud's own differences know holders and who names volumes."""
        return "; ".join([*self.stage.differences(), *self._differences()])

    def _differences(self) -> list[str]:
        there = {one["volid"]: one for one in self.stage.simulator.state()["sim1"]["volumes"]}
        found = []
        for row in self.volumes():
            if row.status in REST and row.status != "error_deleting" and row.volid is not None:
                found += self._differs(row, there.get(row.volid), self.data(row), row.volid)
        for row in self.snapshots():
            if row.status == SnapshotStatus.AVAILABLE and row.volid is not None:
                found += self._differs(row, there.get(row.volid), self.kept(row), row.volid)
            elif row.status == SnapshotStatus.AVAILABLE:
                found += self._snapshot_differs(row, there)
        return found

    def _differs(self, row: Any, volume: Any, data: str | None, volid: str) -> list[str]:
        if volume is None:
            return [f"volume {volid} is not there"]
        found = []
        # A volume that couldn't be extended has either size, as in Cinder.
        if row.status != "error_extending" and volume["size"] != row.size_gib * GIB:
            found.append(f"{volid} has {volume['size']} bytes, the record {row.size_gib} GiB")
        if data is not None and volume["data"] != data:
            found.append(f"{volid} has {volume['data']!r} in it, not {data!r}")
        return found

    def _snapshot_differs(self, row: Any, there: Any) -> list[str]:
        volid = next(one.volid for one in self.volumes() if one.id == row.volume_id)
        kept = there.get(volid, {}).get("kept", {}).get(row.snapname)
        wanted = self.kept(row)
        if wanted is None or kept == wanted:
            return []
        return [f"snapshot {row.snapname} of {volid} has {kept!r} in it, not {wanted!r}"]

    def data(self, row: Any) -> str | None:
        """What must be in a volume; None: it is nobody's business."""
        return PATTERN

    def kept(self, row: Any) -> str | None:
        """What must be in a snapshot."""
        return PATTERN

    # --- making

    def new(self, name: str | None = None, size_gib: int = 1, **more: Any) -> NewVolume:
        """A volume of the story's type."""
        named = name or self.name
        return NewVolume("project", size_gib, name=named, type_id=self.type_id(), **more)

    def type_id(self) -> str | None:
        """The type that volumes are of."""
        return None if self.storage is None else self.type_on(self.storage)

    def type_on(self, storage: str) -> str:
        """The type of a storage, which is added to the cluster if it isn't there."""
        if storage in _TO_ADD:
            add_volume_storages(self.stage.simulator.cluster())
        types = schema.volume_types.c
        query = sa.select(types.id).where(types.storage == storage)
        found: str = self.stage.until(lambda: next(iter(self.stage.rows(query)), None)).id
        return found

    def make(self, new: NewVolume) -> None:
        """Ask for a volume."""
        context, client = self.stage.context(), self.stage.client
        self.asked("create_volume", lambda: client.create_volume(context, new))

    def there(self, **more: Any) -> None:
        """Have the volume made, with a pattern in it."""
        self.make(self.new(**more))
        self.rest(lambda: self.status(self.row()) == "available")
        self.write(self.row().volid, PATTERN)

    def write(self, volid: str, data: str) -> None:
        """Write to a volume, as a guest does."""
        cluster = self.stage.simulator.cluster()
        with cluster.turn():
            node = next(one.node for one in self.volumes() if one.volid == volid)
            volume = cluster.volume(volid, node)
            assert volume is not None
            volume.data = data
            cluster.add_volume(volume)

    def take(self) -> None:
        """Ask for a snapshot of the volume."""
        new = NewVolumeSnapshot(self.row().id, self.name, in_use=True)
        context, client = self.stage.context(), self.stage.client
        self.asked("create_volume_snapshot", lambda: client.create_volume_snapshot(context, new))

    def operations(self, action: str) -> list[str]:
        """The states of the volume's operations of this action, the first one first."""
        columns = schema.operations.c
        query = sa.select(columns.state).where(
            columns.action == action, columns.resource_id == self.row().id
        )
        return [str(one.state) for one in self.stage.rows(query.order_by(columns.id))]

    def snapped(self) -> None:
        """Have a snapshot of the volume."""
        self.take()
        self.rest(lambda: self.snapshot().status == SnapshotStatus.AVAILABLE)

    def rest(self, check: Any) -> None:
        """Wait for something, and until nothing is under way."""
        self.stage.until(lambda: check() and not self.stage.open_operations())

    # --- the end

    def remove(self) -> str:
        """See ``Story``: servers first; what they leave must be right. Then all volumes go."""
        for server in self.servers():
            self.stage.helped(lambda uuid=server.uuid: self.stage.gone(uuid))  # type: ignore[misc]
        self.stage.helped(lambda: not self.stage.open_operations())
        wrong = self.wrong()
        self.until_gone(self.nothing_left, self.delete_all)
        return wrong

    def nothing_left(self) -> bool:
        """Whether all that the story has made is gone."""
        return not self.volumes() and not self.snapshots()

    def delete_all(self) -> None:
        """Ask for the removal of all that is there: by force, as some is in error."""
        context, client = self.stage.context(), self.stage.client
        for row in self.volumes():
            with contextlib.suppress(MicronovaError):
                client.delete_volume(context, row.id, force=True, cascade=True)

    # --- servers

    def server(self) -> Any:
        """The server's row, while it isn't deleted."""
        columns = schema.servers.c
        query = sa.select(schema.servers).where(
            columns.name == self.name, columns.deleted_at.is_(None)
        )
        return next(iter(self.stage.rows(query)), None)

    def servers(self) -> list[Any]:
        """See ``Story``."""
        row = self.server()
        return [] if row is None else [row]


class Made(VolumeStory, abc.ABC):
    """Something is done with a volume that is there."""

    good = "available"

    def prepare(self) -> None:
        """See ``Story``."""
        self.there()

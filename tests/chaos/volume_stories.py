"""Stories of volumes: none is lost, none is left, none is in two VMs, and its data stay."""

from __future__ import annotations

import contextlib
from typing import Any

import sqlalchemy as sa

from common import ids
from common.errors import MicronovaError
from conductor.messages import NewVolume, NewVolumeImage, VolumeWish
from db import schema
from tests.chaos.cloud import IMAGE
from tests.chaos.story import Story

GIB = 1 << 30
PATTERN = "a pattern"
#: the storage of the type that volumes get: another one than they are on
TARGET = "local"
#: statuses in which nothing is under way
REST = frozenset({"available", "in-use", "error", "error_deleting", "error_extending", "reserved"})


class CreateVolume(Story):
    """An empty volume is made."""

    good = "available"
    image: str | None = None

    def prepare(self) -> None:
        """See ``Story``: it begins with nothing."""

    def act(self) -> None:
        """See ``Story``."""
        self._create()

    def _create(self) -> None:
        new = NewVolume("project", 1, name=self.name, image_id=self.image)
        context = self.stage.context()
        self.asked("create_volume", lambda: self.stage.client.create_volume(context, new))

    def state(self) -> str:
        """See ``Story``."""
        row = self.row()
        status = "none" if row is None else str(row.status)
        return status if status in REST or status == "none" else ""

    def row(self) -> Any:
        """The volume's row; None: there is none."""
        query = sa.select(schema.volumes).where(schema.volumes.c.name == self.name)
        return next(iter(self.stage.rows(query)), None)

    def wrong(self) -> str:
        """See ``Story``. The cloud's own differences know holders and who names volumes."""
        return "; ".join([*self.stage.differences(), *self._volume_differs()])

    def _volume_differs(self) -> list[str]:
        row = self.row()
        if row is None or row.status not in ("available", "in-use") or row.volid is None:
            return []
        volume = self.volume(row)
        if volume is None:
            return [f"volume {row.volid} is not there"]
        found = []
        if volume["size"] != row.size_gib * GIB:
            found.append(f"{row.volid} has {volume['size']} bytes, the record {row.size_gib} GiB")
        if self.data() is not None and volume["data"] != self.data():
            found.append(f"{row.volid} has {volume['data']!r} in it, not {self.data()!r}")
        return found

    def data(self) -> str | None:
        """What must be in the volume; None: it is nobody's business."""
        return f"image {IMAGE}.qcow2" if self.image else None

    def volume(self, row: Any) -> Any:
        """The volume as the cluster has it."""
        volumes = self.stage.simulator.state()["sim1"]["volumes"]
        return next((one for one in volumes if one["volid"] == row.volid), None)

    def remove(self) -> str:
        """See ``Story``."""
        for server in self.servers():
            self.stage.until(lambda uuid=server.uuid: self.stage.gone(uuid))  # type: ignore[misc]
        self.until_gone(lambda: self.row() is None, self._delete)
        return ""

    def _delete(self) -> None:
        row = self.row()
        if row is not None:
            # An administrator forces what is in error because of what was struck.
            self.stage.client.delete_volume(self.stage.context(), row.id, force=True)

    def there(self) -> None:
        """Have the volume made, with a pattern in it."""
        self._create()
        self.stage.until(lambda: self.state() == "available" and not self.stage.open_operations())
        row, cluster = self.row(), self.stage.simulator.cluster()
        with cluster.turn():
            volume = cluster.volume(row.volid, row.node)
            assert volume is not None
            volume.data = PATTERN
            cluster.add_volume(volume)


class CopyImage(CreateVolume):
    """A volume is made of an image."""

    image = ids.named("image", IMAGE)


class _Made(CreateVolume):
    """Something is done with a volume that is there."""

    def prepare(self) -> None:
        """See ``Story``."""
        self.there()

    def data(self) -> str | None:
        """See ``CreateVolume``."""
        return PATTERN


class Extend(_Made):
    """A volume is extended while no server has it."""

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context = self.row().id, self.stage.context()
        client = self.stage.client
        self.asked(
            "extend_volume", lambda: client.extend_volume(context, volume_id, 2, in_use=True)
        )


class Retype(_Made):
    """A volume goes to the storage of another type."""

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context, client = self.row().id, self.stage.context(), self.stage.client
        type_id = ids.named("volume_type", TARGET)
        self.asked(
            "retype_volume",
            lambda: client.retype_volume(context, volume_id, type_id, may_move=True),
        )

    def wrong(self) -> str:
        """See ``Story``: it is in one place, and the record knows in which."""
        row, found = self.row(), super().wrong()
        if found or row is None or row.volid is None:
            return found
        there = sorted(self._copies(row.vmid))
        if there != [row.volid]:
            return f"by the record it is {row.volid}, and there are {there}"
        if row.new_type_id is not None or not row.volid.startswith(f"{row.storage}:"):
            return f"it is {row.volid}, on {row.storage}, and to become {row.new_type_id}"
        return ""

    def _copies(self, vmid: int) -> list[str]:
        volumes = self.stage.simulator.state()["sim1"]["volumes"]
        return [one["volid"] for one in volumes if one["vmid"] == vmid]


class UploadVolume(_Made):
    """An image is made of a volume."""

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context, client = self.row().id, self.stage.context(), self.stage.client
        image = NewVolumeImage(self.name)
        self.asked("upload_volume", lambda: client.upload_volume(context, volume_id, image))

    def wrong(self) -> str:
        """See ``Story``: an image that is there has what the volume has in it."""
        found = super().wrong()
        image = self._image()
        if found or image is None:
            return found
        if image.status != "active":
            return f"the image is {image.status}"
        (volid,) = image.locations.values()
        volumes = self.stage.simulator.state()["sim1"]["volumes"]
        data = [one["data"] for one in volumes if one["volid"] == volid]
        return "" if data == [PATTERN] else f"the image {volid} has {data} in it"

    def remove(self) -> str:
        """See ``Story``: the image first."""
        self.until_gone(lambda: self._image() is None, self._delete_image)
        return super().remove()

    def _delete_image(self) -> None:
        image = self._image()
        if image is not None:
            self.stage.client.delete_image(self.stage.context(), image.id)

    def _image(self) -> Any:
        query = sa.select(schema.images).where(schema.images.c.name == self.name)
        return next(iter(self.stage.rows(query)), None)


class DeleteVolume(_Made):
    """A volume is deleted."""

    good = "none"

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context = self.row().id, self.stage.context()
        self.asked("delete_volume", lambda: self.stage.client.delete_volume(context, volume_id))


class Attach(_Made):
    """A server gets a volume."""

    good = "in-use"

    def prepare(self) -> None:
        """See ``Story``."""
        self.there()
        self.stage.create(self.name, IMAGE, host=self.row().host)
        self.stage.until(lambda: (row := self._server()) and row.vm_state == "active")

    def servers(self) -> list[Any]:
        """See ``Story``."""
        row = self._server()
        return [] if row is None else [row]

    def act(self) -> None:
        """See ``Story``."""
        self._attach()

    def _attach(self) -> None:
        wish, context, uuid = VolumeWish(self.row().id), self.stage.context(), self._server().uuid
        self.asked("attach_volume", lambda: self.stage.client.attach_volume(context, uuid, wish))

    def _server(self) -> Any:
        """The server's row, while it isn't deleted."""
        columns = schema.servers.c
        query = sa.select(schema.servers).where(
            columns.name == self.name, columns.deleted_at.is_(None)
        )
        return next(iter(self.stage.rows(query)), None)

    def attached(self) -> None:
        """Have the server have the volume."""
        self._attach()
        self.stage.until(lambda: self.state() == "in-use" and not self.stage.open_operations())

    def remove(self) -> str:
        """See ``Story``: the server first, then the volume must be there still."""
        for server in self.servers():
            self.stage.helped(lambda uuid=server.uuid: self.stage.gone(uuid))  # type: ignore[misc]
        self.stage.helped(lambda: not self.stage.open_operations())
        wrong = self.wrong()
        if self.row() is None:
            wrong = "the volume is gone"
        return wrong or super().remove()


class ExtendAttached(Attach, Extend):
    """A volume is extended while a server has it."""

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.attached()

    def act(self) -> None:
        """See ``Story``."""
        Extend.act(self)


class Detach(Attach):
    """A server loses a volume."""

    good = "available"

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.attached()

    def act(self) -> None:
        """See ``Story``."""
        context, client = self.stage.context(), self.stage.client
        uuid, volume_id = self._server().uuid, self.row().id
        self.asked("detach_volume", lambda: client.detach_volume(context, uuid, volume_id))


class DeleteServer(Detach):
    """A server that has a volume is deleted."""

    def act(self) -> None:
        """See ``Story``."""
        with contextlib.suppress(MicronovaError):
            self.stage.act(self._server().uuid, "delete")

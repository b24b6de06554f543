"""Stories of volumes: none is lost, none is left, none is in two VMs, and its data stay."""

from __future__ import annotations

import contextlib
from typing import Any

import sqlalchemy as sa

from common import ids
from common.errors import MicronovaError
from conductor.rpc.servers.server_volumes import AttachRequest
from db import schema
from tests.chaos.cloud import IMAGE
from tests.chaos.stage import Party
from tests.chaos.volume_story import OF_IMAGE, Made, VolumeStory


class CreateVolume(VolumeStory):
    """An empty volume is made."""

    good = "available"

    def prepare(self) -> None:
        """See ``Story``: it begins with nothing."""

    def act(self) -> None:
        """See ``Story``."""
        self.make(self.new())

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``."""
        return None


class CopyImage(CreateVolume):
    """A volume is made of an image."""

    def act(self) -> None:
        """See ``Story``."""
        self.make(self.new(image_id=ids.named("image", IMAGE)))

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``."""
        return OF_IMAGE if row.status == "available" else None


class Extend(Made):
    """A volume is extended while it is attached to no server."""

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context = self.row().id, self.stage.context()
        client = self.stage.client
        self.asked(
            "extend_volume", lambda: client.extend_volume(context, volume_id, 2, in_use=True)
        )


class DeleteVolume(Made):
    """A volume is deleted."""

    good = "none"

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context = self.row().id, self.stage.context()
        self.asked("delete_volume", lambda: self.stage.client.delete_volume(context, volume_id))


class Attach(Made):
    """A server gets a volume, whose holder is on another node where the storage is shared."""

    good = "in-use"
    parties: tuple[Party, ...] = (Party.HOLDER, Party.SERVER)

    def prepare(self) -> None:
        """See ``Story``."""
        self.there()
        row, hosts = self.row(), schema.hosts.c.host
        others = self.stage.rows(sa.select(hosts).where(hosts != row.host).order_by(hosts))
        self.stage.create(self.name, IMAGE, host=others[0].host if row.shared else row.host)
        self.rest(lambda: (row := self.server()) and row.vm_state == "active")

    def act(self) -> None:
        """See ``Story``."""
        self.attach()

    def attach(self) -> None:
        """Ask for the volume to be attached."""
        wish, context, uuid = (
            AttachRequest(self.row().id),
            self.stage.context(),
            self.server().uuid,
        )
        self.asked("attach_volume", lambda: self.stage.client.attach_volume(context, uuid, wish))

    def attached(self) -> None:
        """Have the server have the volume."""
        self.attach()
        self.rest(lambda: self.status(self.row()) == "in-use")

    def detach(self) -> None:
        """Ask for the volume to be detached."""
        context, client = self.stage.context(), self.stage.client
        uuid, volume_id = self.server().uuid, self.row().id
        self.asked("detach_volume", lambda: client.detach_volume(context, uuid, volume_id))

    def remove(self) -> str:
        """See ``Story``: when the server is gone the volume must be there still."""
        uuids = [row.uuid for row in self.servers()]
        for uuid in uuids:
            self.stage.helped(lambda uuid=uuid: self.stage.gone(uuid))  # type: ignore[misc]
        self.stage.helped(lambda: not self.stage.open_operations())
        lost = "" if self.row() is not None else "the volume is gone"
        return "; ".join(filter(None, (lost, super().remove())))


class ExtendAttached(Attach, Extend):
    """A volume is extended while it is attached to a server."""

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
        self.detach()


class DeleteServer(Detach):
    """A server that has a volume is deleted."""

    def act(self) -> None:
        """See ``Story``."""
        with contextlib.suppress(MicronovaError):
            self.stage.act(self.server().uuid, "delete")


class AttachLocal(Attach):
    """A server gets a volume that is on a storage of its node's own."""

    storage = "local"
    writes = True


class DetachLocal(Detach):
    """A server loses one."""

    storage = "local"
    writes = True


class DeleteLocal(DeleteVolume):
    """One is deleted."""

    storage = "local"
    writes = True

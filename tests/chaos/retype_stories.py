"""Stories of volumes that go to another storage, and of images made of them."""

from __future__ import annotations

import contextlib
from typing import Any

import sqlalchemy as sa

from common.errors import MicronovaError
from conductor.rpc.volumes.volumes import NewVolumeImage
from db import schema
from tests.chaos.volume_story import PATTERN, Made

#: the storage of the type that volumes get: another one than they are on
TARGET = "local"


class Retype(Made):
    """A volume moves to the storage of another type."""

    target = TARGET

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context, client = self.row().id, self.stage.context(), self.stage.client
        type_id = self.type_on(self.target)
        self.asked(
            "retype_volume",
            lambda: client.retype_volume(context, volume_id, type_id, may_move=True),
        )

    def wrong(self) -> str:
        """See ``Story``: it is in one place, and the record knows in which."""
        return super().wrong() or self._misplaced()

    def _misplaced(self) -> str:
        row = self.row()
        if row is None or row.volid is None:
            return ""
        found = sorted(
            one["volid"]
            for one in self.stage.simulator.state()["sim1"]["volumes"]
            if one["vmid"] == row.vmid
        )
        if found != [row.volid]:
            return f"by the record it is {row.volid}, and there are {found}"
        if row.new_type_id is not None or not row.volid.startswith(f"{row.storage}:"):
            return f"it is {row.volid}, on {row.storage}, and to become {row.new_type_id}"
        moved = self.operations("retype-volume")[-1:] == ["done"]
        there = (row.type_id == self.type_on(self.target), row.storage == self.target)
        if there != (moved, moved):
            return f"it is {row.volid} of type {row.type_id}, and the retype is done: {moved}"
        return ""


class UploadVolume(Made):
    """An image is made of a volume."""

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context, client = self.row().id, self.stage.context(), self.stage.client
        image = NewVolumeImage(self.name)
        self.asked("upload_volume", lambda: client.upload_volume(context, volume_id, image))

    def wrong(self) -> str:
        """See ``Story``: an image that is there has what the volume has in it."""
        return super().wrong() or self._image_differs()

    def _image_differs(self) -> str:
        image = self._image()
        done = self.operations("upload-volume")[-1:] == ["done"]
        if (image is not None) != done:
            return f"the upload is done: {done}, the image is {image and image.status}"
        if image is None:
            return ""
        if image.status != "active":
            return f"the image is {image.status}"
        (volid,) = image.locations.values()
        volumes = self.stage.simulator.state()["sim1"]["volumes"]
        data = [one["data"] for one in volumes if one["volid"] == volid]
        return "" if data == [PATTERN] else f"the image {volid} has {data} in it"

    def nothing_left(self) -> bool:
        """See ``VolumeStory``."""
        return self._image() is None and super().nothing_left()

    def delete_all(self) -> None:
        """See ``VolumeStory``: the image as well."""
        image = self._image()
        if image is not None:
            with contextlib.suppress(MicronovaError):
                self.stage.client.delete_image(self.stage.context(), image.id)
        super().delete_all()

    def _image(self) -> Any:
        query = sa.select(schema.images).where(schema.images.c.name == self.name)
        return next(iter(self.stage.rows(query)), None)

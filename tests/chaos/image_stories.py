"""Stories of images: their data are sent to the API, and get to the cluster's storage."""

from __future__ import annotations

import contextlib
from typing import Any

import requests
import sqlalchemy as sa

from db import schema
from tests.chaos.stage import Stage
from tests.chaos.story import Story

DATA = b"micronova" * 4096


class Upload(Story):
    """An image is made and its data are sent."""

    good = "active"

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name)
        self._door = stage.image_door

    def prepare(self) -> None:
        """See ``Story``: it begins with nothing."""

    def act(self) -> None:
        """See ``Story``."""
        with contextlib.suppress(requests.RequestException):
            made = self._door.make(self.name)
            if made.ok:
                self._door.send(str(made.json()["id"]), DATA)

    def state(self) -> str:
        """See ``Story``: what is being saved is under way, though no operation may be open."""
        row = self._row()
        status = "none" if row is None else str(row.status)
        return "" if status in ("saving", "importing") else status

    def wrong(self) -> str:
        """See ``Story``: an image that is active has its file, another one nothing."""
        row, files = self._row(), self._files()
        found = []
        if row is not None and row.status == "active":
            wanted = {volid: len(DATA) for volid in row.locations.values()}
            if files != wanted or not wanted:
                found.append(f"the image is at {wanted}, the files are {files}")
        elif files:
            found.append(f"the image is {self.state()}, its files are {files}")
        if row is not None and row.status not in ("active", "queued", "killed"):
            found.append(f"the image is {row.status}")
        return "; ".join(found)

    def remove(self) -> str:
        """See ``Story``."""
        row = self._row()
        if row is not None:
            self.until_gone(lambda: self._row() is None, lambda: self._door.delete(row.id))
        return f"files {self._files()}" if self._files() else ""

    def _row(self) -> Any:
        query = sa.select(schema.images).where(schema.images.c.name == self.name)
        return next(iter(self.stage.rows(query)), None)

    def _files(self) -> dict[str, int]:
        volumes = self.stage.simulator.state()["sim1"]["volumes"]
        return {one["volid"]: one["size"] for one in volumes if "/mn-" in one["volid"]}


class DeleteImage(Upload):
    """An image that is there is deleted."""

    good = "none"

    def prepare(self) -> None:
        """See ``Story``."""
        super().act()
        self.stage.until(lambda: self.state() == "active" and not self.stage.open_operations())

    def act(self) -> None:
        """See ``Story``."""
        with contextlib.suppress(requests.RequestException):
            self._door.delete(self._row().id)

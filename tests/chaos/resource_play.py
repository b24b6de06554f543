"""Scenarios of what is no server: images with their files, networks with their vnets, volumes.

Each is a story: what must be there before, what is asked, and what must be so whatever strikes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from common.errors import MicronovaError
from tests.chaos.backup_stories import BackUp, DeleteBackup, Restore
from tests.chaos.boot_volume_stories import BootNew, BootSnapshot, BootThere, DeleteBooted
from tests.chaos.cloud import BOUND_SECONDS, Overdue
from tests.chaos.image_stories import DeleteImage, Upload
from tests.chaos.network_stories import DeleteNetwork, MakeNetwork
from tests.chaos.play import Play
from tests.chaos.reimage_stories import ImageOfVolumes, RebuildOnVolume, ReimageVolume
from tests.chaos.retype_stories import Retype, UploadVolume
from tests.chaos.server_volume_stories import (
    AttachPaused,
    AttachShelved,
    DetachPaused,
    DetachShelved,
    Move,
    Resize,
)
from tests.chaos.snapshot_stories import (
    Cascade,
    CascadeCopy,
    CopyOfCopy,
    CopySnapshot,
    CopyVolume,
    DeleteCopy,
    DeleteSnapshot,
    Revert,
    RevertThin,
    Snap,
    SnapAsCopy,
    SnapAttached,
)
from tests.chaos.stage import Stage
from tests.chaos.story import Story
from tests.chaos.volume_stories import (
    Attach,
    AttachLocal,
    CopyImage,
    CreateVolume,
    DeleteLocal,
    DeleteServer,
    DeleteVolume,
    Detach,
    DetachLocal,
    Extend,
    ExtendAttached,
)

SOON_SECONDS = 20

#: scenario → its story
STORIES: Mapping[str, type[Story]] = {
    "upload": Upload,
    "delete of an image": DeleteImage,
    "network": MakeNetwork,
    "delete of a network": DeleteNetwork,
    "volume": CreateVolume,
    "volume of an image": CopyImage,
    "extend a volume": Extend,
    "retype a volume": Retype,
    "upload a volume": UploadVolume,
    "delete of a volume": DeleteVolume,
    "attach a volume": Attach,
    "extend an attached volume": ExtendAttached,
    "detach a volume": Detach,
    "delete of a server with a volume": DeleteServer,
    "attach a local volume": AttachLocal,
    "detach a local volume": DetachLocal,
    "delete of a local volume": DeleteLocal,
    "snapshot": Snap,
    "snapshot of a volume in use": SnapAttached,
    "snapshot as a copy": SnapAsCopy,
    "delete of a snapshot": DeleteSnapshot,
    "delete of a copied snapshot": DeleteCopy,
    "revert": Revert,
    "revert on thin storage": RevertThin,
    "volume of a volume": CopyVolume,
    "volume of a snapshot": CopySnapshot,
    "volume of a copied snapshot": CopyOfCopy,
    "delete of a volume with a snapshot": Cascade,
    "delete of a volume with a copied snapshot": CascadeCopy,
    "boot from a new volume": BootNew,
    "boot from a volume": BootThere,
    "boot from a snapshot": BootSnapshot,
    "delete of a server and its volume": DeleteBooted,
    "another image of a volume": ReimageVolume,
    "rebuild on a volume": RebuildOnVolume,
    "image of volumes": ImageOfVolumes,
    "backup of a volume": BackUp,
    "restore of a backup": Restore,
    "delete of a backup": DeleteBackup,
    "attach to a shelved server": AttachShelved,
    "detach from a shelved server": DetachShelved,
    "attach to a paused server": AttachPaused,
    "detach from a paused server": DetachPaused,
    "live-migration with a volume": Move,
    "resize with a volume": Resize,
}


class ResourcePlay(Play):
    """One run of a story."""

    def __init__(self, stage: Stage, scenario: str, number: int, image: int) -> None:
        super().__init__(stage, scenario, number, image)
        self._story = STORIES[scenario](stage, f"thing-{number}")
        self.good = self._story.good
        self._lost_before = len(stage.lost_nodes)

    def prepare(self) -> None:
        """See ``Play``."""
        self._story.prepare()

    def act(self) -> None:
        """See ``Play``. A refusal because of what was struck is an answer."""
        with contextlib.suppress(MicronovaError):
            self._story.act()

    def rows(self) -> list[Any]:
        """See ``Play``: servers, if the story has some."""
        return self._story.servers()

    def settled(self) -> str:
        """See ``Play``: what it is once nothing is under way."""
        if self.good != "none" and self._story.state() == "none":
            self._request_arrived()

        def rest() -> str:
            if self.stage.open_operations():
                return ""
            return self._story.state()

        return str(self.stage.helped(rest))

    def kept(self) -> str:
        """What is wrong with it; then it is removed, and nothing of it may be left."""
        wrong = ""

        def right() -> bool:
            nonlocal wrong
            self.stage.follow_remedies()
            wrong = self._story.wrong()
            return not wrong

        with contextlib.suppress(Overdue):
            lost_node = len(self.stage.lost_nodes) > self._lost_before
            self.stage.until(right, BOUND_SECONDS if lost_node else SOON_SECONDS)
        return wrong or self._story.remove()

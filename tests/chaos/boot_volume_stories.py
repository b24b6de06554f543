"""Stories of servers that boot from volumes: a failed build removes only what it has made."""

from __future__ import annotations

import contextlib
from typing import Any

from common import ids
from common.errors import MicronovaError
from conductor.rpc.servers.servers import BlockDevice, CreateServers, RequestedNetwork
from conductor.rpc.volumes.volumes import VolumeEdit
from tests.chaos.cloud import FLAVOR, IMAGE
from tests.chaos.stage import Party
from tests.chaos.volume_story import LATER, OF_IMAGE, PATTERN, VolumeStory


class BootNew(VolumeStory):
    """A server is built from a volume that is made with it, of an image."""

    good = "active"
    parties: tuple[Party, ...] = (Party.HOLDER, Party.SERVER)

    def prepare(self) -> None:
        """See ``Story``: it begins with nothing."""

    def act(self) -> None:
        """See ``Story``."""
        self.build(self.root())

    def root(self) -> BlockDevice:
        """What the server boots from."""
        return BlockDevice(size_gib=1, image_id=ids.named("image", IMAGE), boot=True)

    def build(self, root: BlockDevice) -> None:
        """Ask for the server."""
        network = RequestedNetwork(ids.named("network", "vmbr0"))
        request = CreateServers(self.name, FLAVOR, "", networks=(network,), volumes=(root,))
        context, client = self.stage.context(), self.stage.client
        self.asked("create_servers", lambda: client.create_servers(context, request))

    def state(self) -> str:
        """See ``Story``: the server's."""
        row = self.server()
        if row is None:
            return "none"
        return "" if row.vm_state == "building" or row.task_state else str(row.vm_state)

    def wrong(self) -> str:
        """See ``Story``: a server that was built has its volume, else no volume is left."""
        return "; ".join(filter(None, (super().wrong(), self._of_server())))

    def _of_server(self) -> str:
        row = self.server()
        if row is None or row.vm_state == "building":
            return ""
        has = [one.status for one in self.volumes() if one.name != self.name]
        wanted = [] if row.vm_state == "error" else ["in-use"]
        return "" if has == wanted else f"the server is {row.vm_state}, its volumes {has}"

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``."""
        return OF_IMAGE if row.status == "in-use" else None


class BootThere(BootNew):
    """A server is built from a volume that is there."""

    def prepare(self) -> None:
        """See ``Story``."""
        self.there()
        edit = VolumeEdit(bootable=True)
        self.stage.client.edit_volume(self.stage.context(), self.row().id, edit)

    def root(self) -> BlockDevice:
        """See ``BootNew``."""
        return BlockDevice(self.row().id, boot=True)

    def _of_server(self) -> str:
        row, volume = self.server(), self.row()
        if volume is None:
            return "the volume is gone"
        built = row is not None and row.vm_state not in ("building", "error")
        wanted = "in-use" if built else "available"
        return "" if volume.status == wanted else f"the volume is {volume.status}, not {wanted}"

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``."""
        return PATTERN


class BootSnapshot(BootNew):
    """A server is built from a volume that is made with it, of a snapshot."""

    def prepare(self) -> None:
        """See ``Story``: something else is written after the snapshot."""
        self.there()
        edit = VolumeEdit(bootable=True)
        self.stage.client.edit_volume(self.stage.context(), self.row().id, edit)
        self.snapped()
        self.write(self.row().volid, LATER)

    def root(self) -> BlockDevice:
        """See ``BootNew``."""
        return BlockDevice(size_gib=1, snapshot_id=self.snapshot().id, boot=True)

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``."""
        if row.name == self.name:
            return LATER
        return PATTERN if row.status == "in-use" else None


class DeleteBooted(BootNew):
    """A server is deleted, and its volume with it."""

    good = "none"

    def prepare(self) -> None:
        """See ``Story``."""
        device = BlockDevice(
            size_gib=1,
            image_id=ids.named("image", IMAGE),
            boot=True,
            delete_on_termination=True,
        )
        self.build(device)
        self.rest(lambda: self.state() == "active")

    def act(self) -> None:
        """See ``Story``."""
        with contextlib.suppress(MicronovaError):
            self.stage.act(self.server().uuid, "delete")

    def _of_server(self) -> str:
        has = [one.status for one in self.volumes()]
        wanted = ["in-use"] if self.server() is not None else []
        return "" if has == wanted else f"volumes are {has}, not {wanted}"

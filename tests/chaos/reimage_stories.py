"""Stories of volumes that get an image: the volume has the old content or the new, whole, and its
server's VM names what the record says."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import sqlalchemy as sa

from common import ids
from common.errors import MicronovaError
from common.resources.volumes import SnapshotStatus
from conductor.rpc.servers.servers import (
    BlockDevice,
    CreateServers,
    NewServerImage,
    RebuildServer,
    RequestedNetwork,
)
from db import schema
from tests.chaos.cloud import FLAVOR, IMAGE
from tests.chaos.dressing import image_name
from tests.chaos.stage import Party
from tests.chaos.volume_story import OF_IMAGE, VolumeStory

#: the image that they get
NEW = image_name(0)
_CONTENT = {ids.named("image", NEW): f"image {NEW}.qcow2", ids.named("image", IMAGE): OF_IMAGE}
_ENDS = frozenset({"active", "stopped", "error"})


class ReimageVolume(VolumeStory):
    """A volume that no server has gets another image."""

    good = "available"

    def prepare(self) -> None:
        """See ``Story``."""
        self.make(self.new(image_id=ids.named("image", IMAGE)))
        self.rest(lambda: self.status(self.row()) == "available")

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context, client = self.row().id, self.stage.context(), self.stage.client
        new = ids.named("image", NEW)
        self.asked(
            "reimage_volume",
            lambda: client.reimage_volume(context, volume_id, new, reserved=False),
        )

    def data(self, row: Any) -> str | None:
        """See ``VolumeStory``: what the record says that it is made of."""
        return _CONTENT[row.image_metadata["image_id"]]

    def kept(self, row: Any) -> str | None:
        """See ``VolumeStory``."""
        return OF_IMAGE


class RebuildOnVolume(ReimageVolume):
    """A server is rebuilt with another image, which its root volume gets."""

    good = "active"
    parties: tuple[Party, ...] = (Party.HOLDER, Party.SERVER)

    def prepare(self) -> None:
        """See ``Story``: the server is on another node than the holder."""
        super().prepare()
        row, hosts = self.row(), schema.hosts.c.host
        others = self.stage.rows(sa.select(hosts).where(hosts != row.host).order_by(hosts))
        request = CreateServers(
            self.name,
            FLAVOR,
            "",
            networks=(RequestedNetwork(ids.named("network", "vmbr0")),),
            volumes=(BlockDevice(row.id, boot=True),),
            force_host=others[0].host if row.shared else row.host,
        )
        context, client = self.stage.context(), self.stage.client
        self.asked("create_servers", lambda: client.create_servers(context, request))
        self.rest(lambda: self.state() == "active")

    def act(self) -> None:
        """See ``Story``."""
        uuid, context, client = self.server().uuid, self.stage.context(), self.stage.client
        request = RebuildServer(ids.named("image", NEW), reimages=True)
        self.asked("rebuild_server", lambda: client.rebuild_server(context, uuid, request))

    def state(self) -> str:
        """See ``Story``: the server's, once the volume is at rest."""
        server = self.server()
        if server is None:
            return super().state()
        rests = server.task_state is None and server.vm_state in _ENDS
        return str(server.vm_state) if rests and super().state() == "in-use" else ""

    def wrong(self) -> str:
        """See ``Story``."""
        return "; ".join(filter(None, [super().wrong(), self._names_another()]))

    def _names_another(self) -> str:
        """What the VM has as its root disk, if that isn't what the record says."""
        server, row = self.server(), self.row()
        if row is None:
            return "the volume is gone"
        if server is None:
            return ""
        vms = self.stage.simulator.state()["sim1"]["vms"]
        found = next((vm for vm in vms if vm["vmid"] == server.vmid), None)
        drive = "nothing" if found is None else str(found["config"].get("scsi0", "nothing"))
        return "" if drive.split(",")[0] == row.volid else f"the VM has {drive}, not {row.volid}"


class ImageOfVolumes(RebuildOnVolume):
    """An image is made of a stopped server that boots from a volume: its snapshots."""

    good = "stopped"

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.stage.act(self.server().uuid, "stop")
        self.rest(lambda: self.state() == "stopped")

    def act(self) -> None:
        """See ``Story``."""
        uuid, context, client = self.server().uuid, self.stage.context(), self.stage.client
        asked = NewServerImage(f"{self.name}-image")
        self.asked("create_server_image", lambda: client.create_server_image(context, uuid, asked))

    def state(self) -> str:
        """See ``Story``: the server's, once the snapshots are at rest."""
        busy = (SnapshotStatus.CREATING, SnapshotStatus.DELETING)
        return "" if any(one.status in busy for one in self.snapshots()) else super().state()

    def wrong(self) -> str:
        """See ``Story``: an image names the one snapshot that there is, or there is neither."""
        listed = [
            one["snapshot_id"]
            for image in self._images()
            for one in json.loads(image.properties["block_device_mapping"])
        ]
        there = [one.id for one in self.snapshots()]
        differs = "" if listed == there else f"the image lists {listed}, there are {there}"
        return "; ".join(filter(None, [super().wrong(), differs]))

    def _images(self) -> list[Any]:
        query = sa.select(schema.images).where(schema.images.c.name == f"{self.name}-image")
        return list(self.stage.rows(query))

    def nothing_left(self) -> bool:
        """See ``VolumeStory``."""
        return not self._images() and super().nothing_left()

    def delete_all(self) -> None:
        """See ``VolumeStory``: the image first, whose snapshots go with their volume."""
        for image in self._images():
            with contextlib.suppress(MicronovaError):
                self.stage.client.delete_image(self.stage.context(), image.id)
        super().delete_all()

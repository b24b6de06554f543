"""Stories of servers that boot from volumes: the volume has the old content or the new, whole, and
its server's VM names what the record says."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import sqlalchemy as sa

from common import ids
from common.errors import MicronovaError
from conductor.messages import (
    BlockDevice,
    CreateServers,
    NewServerImage,
    RebuildServer,
    RequestedNetwork,
)
from db import schema
from tests.chaos.cloud import FLAVOR, IMAGE
from tests.chaos.dressing import image_name
from tests.chaos.volume_stories import CopyImage

NEW = image_name(0)
_ENDS = frozenset({"active", "error"})


class ReimageVolume(CopyImage):
    """A volume that no server has gets another image."""

    def prepare(self) -> None:
        """See ``Story``."""
        self._create()
        self.stage.until(lambda: self.state() == "available" and not self.stage.open_operations())

    def act(self) -> None:
        """See ``Story``."""
        volume_id, context, client = self.row().id, self.stage.context(), self.stage.client
        new = ids.named("image", NEW)
        self.asked(
            "reimage_volume",
            lambda: client.reimage_volume(context, volume_id, new, reserved=False),
        )

    def data(self) -> str | None:
        """See ``CreateVolume``: what the record says that it is made of."""
        row = self.row()
        known = {ids.named("image", name): f"image {name}.qcow2" for name in (IMAGE, NEW)}
        return known[row.image_metadata["image_id"]]


class RebuildOnVolume(ReimageVolume):
    """A server is rebuilt with another image, which its root volume gets."""

    good = "active"

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self._boot(BlockDevice(self.row().id, boot=True))
        self.stage.until(lambda: self.state() == "active" and not self.stage.open_operations())

    def _boot(self, *devices: BlockDevice) -> None:
        network = RequestedNetwork(ids.named("network", "vmbr0"))
        request = CreateServers(
            self.name, FLAVOR, "", networks=(network,), volumes=devices, force_host=self.row().host
        )
        context, client = self.stage.context(), self.stage.client
        self.asked("create_servers", lambda: client.create_servers(context, request))

    def act(self) -> None:
        """See ``Story``."""
        uuid, context, client = self._server().uuid, self.stage.context(), self.stage.client
        request = RebuildServer(ids.named("image", NEW), reimages=True)
        self.asked("rebuild_server", lambda: client.rebuild_server(context, uuid, request))

    def servers(self) -> list[Any]:
        """See ``Story``."""
        row = self._server()
        return [] if row is None else [row]

    def _server(self) -> Any:
        """The server's row, while it isn't deleted."""
        columns = schema.servers.c
        query = sa.select(schema.servers).where(
            columns.name == self.name, columns.deleted_at.is_(None)
        )
        return next(iter(self.stage.rows(query)), None)

    def state(self) -> str:
        """See ``Story``: the server's, once the volume is at rest."""
        server = self._server()
        if server is None:
            return super().state()
        rests = server.task_state is None and server.vm_state in _ENDS
        return str(server.vm_state) if rests and super().state() == "in-use" else ""

    def wrong(self) -> str:
        """See ``Story``."""
        return "; ".join(filter(None, [super().wrong(), self._names_another()]))

    def _names_another(self) -> str:
        """What the VM has as its root disk, if that isn't what the record says."""
        server, row = self._server(), self.row()
        if server is None or row is None:
            return ""
        vms = self.stage.simulator.state()["sim1"]["vms"]
        found = next((vm for vm in vms if vm["vmid"] == server.vmid), None)
        drive = "nothing" if found is None else str(found["config"].get("scsi0", "nothing"))
        return "" if drive.split(",")[0] == row.volid else f"the VM has {drive}, not {row.volid}"

    def remove(self) -> str:
        """See ``Story``: the server first, then the volume must be there still."""
        for server in self.servers():
            self.stage.helped(lambda uuid=server.uuid: self.stage.gone(uuid))  # type: ignore[misc]
        self.stage.helped(lambda: not self.stage.open_operations())
        wrong = "; ".join([*self.stage.differences(), *self._volume_differs()])
        if self.row() is None:
            wrong = "the volume is gone"
        return wrong or super().remove()


class ImageOfVolumes(RebuildOnVolume):
    """An image is made of a stopped server that boots from a volume: its snapshots."""

    good = "stopped"

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.stage.act(self._server().uuid, "stop")
        self.stage.until(lambda: self.state() == "stopped" and not self.stage.open_operations())

    def act(self) -> None:
        """See ``Story``."""
        uuid, context, client = self._server().uuid, self.stage.context(), self.stage.client
        asked = NewServerImage(f"{self.name}-image")
        self.asked("create_server_image", lambda: client.create_server_image(context, uuid, asked))

    def state(self) -> str:
        """See ``Story``."""
        server = self._server()
        if server is None or server.vm_state != "stopped":
            return super().state()
        return "" if any(one.status == "creating" for one in self._snapshots()) else "stopped"

    def wrong(self) -> str:
        """See ``Story``: an image names the one snapshot that there is, or there is neither."""
        listed = [
            one["snapshot_id"]
            for image in self._images()
            for one in json.loads(image.properties["block_device_mapping"])
        ]
        there = [one.id for one in self._snapshots()]
        differs = "" if listed == there else f"the image lists {listed}, there are {there}"
        return "; ".join(filter(None, [super().wrong(), differs]))

    def _images(self) -> list[Any]:
        query = sa.select(schema.images).where(schema.images.c.name == f"{self.name}-image")
        return list(self.stage.rows(query))

    def _snapshots(self) -> list[Any]:
        row, columns = self.row(), schema.volume_snapshots.c
        mine = columns.volume_id == (None if row is None else row.id)
        return list(self.stage.rows(sa.select(schema.volume_snapshots).where(mine)))

    def remove(self) -> str:
        """See ``Story``."""
        context, client = self.stage.context(), self.stage.client
        for image in self._images():
            client.delete_image(context, image.id)
        self.until_gone(lambda: not self._snapshots(), self._delete_snapshots)
        return super().remove()

    def _delete_snapshots(self) -> None:
        for one in self._snapshots():
            with contextlib.suppress(MicronovaError):
                self.stage.client.delete_volume_snapshot(self.stage.context(), one.id)

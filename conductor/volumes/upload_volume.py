"""Makes images of volumes: the disk is copied into a template of its cluster, as that of a server.

The volume is available again whatever comes of it; an image that could not be made is deleted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from common.context import RequestContext
from common.errors import Invalid
from common.messages.commands import Copy
from common.messages.reports import Copied, Failure
from common.resources.image_attributes import is_property
from common.resources.states import ResourceType
from common.resources.volumes import RULES, VolumeAction
from common.rpc import deadlines
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.stages import Stage, Undo
from conductor.engine.unwound_command import UnwoundCommand
from conductor.images import new_template, remove_image
from conductor.plans import Place, UploadVolumePlan
from conductor.rpc.volumes.volumes import NewVolumeImage
from conductor.store.images import server_images
from conductor.store.quotas import image_quotas
from conductor.store.transactions import Transaction
from conductor.store.volumes import snapshots, volumes
from conductor.volumes import uncertain
from conductor.volumes.volume_command import VolumeCommand, VolumeWork

#: what a volume has of its image that is no property (of cinder's ``glance_core_properties``)
_CORE = frozenset({"image_name", "image_id"})
#: what the properties of a signed image begin with
_RESERVED = ("img_signature", "signature_verified")


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    row: Any,
    asked: NewVolumeImage,
) -> str:
    """Write an image of a volume that is locked, with the operation that makes it; return its id.

    Raises Invalid.
    """
    if row.status not in RULES[VolumeAction.UPLOAD].begins:
        raise Invalid(f"Invalid volume: Volume {row.id} status must be available")
    snapshots.require_alone(connection, row)
    image_quotas.take(connection, str(ctxt.project_id), cloud.conf, {"image_count_total": 1})
    image_id = deadlines.new_uuid()
    server_images.insert(
        connection,
        image_id,
        asked.name,
        str(ctxt.project_id),
        None,
        properties(row.image_metadata or {}),
        (row.size_gib, 0),
        disk_format=asked.disk_format,
        visibility=asked.visibility,
        protected=asked.protected,
    )
    where = Place(row.host, None, row.cluster, row.node)
    plan = UploadVolumePlan(
        where,
        Copy(
            source_vmid=row.vmid,
            image_id=image_id,
            image_name=asked.name,
            volid=row.volid,
            project_id=str(ctxt.project_id),
            user_id=str(ctxt.user_id or ""),
        ),
        disk_format=asked.disk_format,
    )
    resource = (ResourceType.VOLUME, row.id)
    item = start.new(cloud, VolumeAction.UPLOAD, resource, row.project_id, plan)
    start.begin_later(connection, ctxt, item)
    volumes.show_begun(connection, row, VolumeAction.UPLOAD)
    return image_id


def properties(of_volume: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a volume's image gets from the one it was made of. Pure."""
    return {
        name: value
        for name, value in of_volume.items()
        if is_property(name) and name not in _CORE and not name.startswith(_RESERVED)
    }


class UploadVolumeFlow(UnwoundCommand[VolumeWork, Copied], VolumeCommand[Copied]):
    """The flow of ``VolumeAction.UPLOAD``."""

    stage = "copy"
    sends = Copy
    unseen = "The agent says nothing of a copy."
    late = "The image was not made in time."

    def stages(self) -> tuple[Stage[VolumeWork], ...]:
        """Return the stages: the template's VMID is reserved before an agent makes it."""
        remove = Undo[VolumeWork]("remove_image", write=self._remove)
        return (Stage("reserve", self._reserve, undo=remove), *super().stages())

    def _reserve(self, task: VolumeWork) -> VolumeWork:
        """Reserve the template's VMID. Raises BandExhausted to be tried again later."""
        run, stage = self._cloud.store.run, self.stage
        return run(lambda c: new_template.reserve(c, self._cloud, task, stage))

    def succeeded(self, task: VolumeWork, outcome: Copied) -> bool:
        """Return whether there is a copy."""
        return outcome.ok and outcome.disk is not None

    def write_done(self, connection: Transaction, end: End[VolumeWork, Copied]) -> None:
        """Set the image to active unless it was deleted, and the volume to its previous status."""
        plan, copied = end.operation.planned(UploadVolumePlan), end.outcome.disk
        if copied is None:
            raise ValueError(f"the outcome of operation {end.operation.id} has no copy")
        copied = dataclasses.replace(copied, disk_format=plan.disk_format)
        cluster, image_id = str(plan.target.cluster), end.operation.ordered(Copy).image_id
        if not server_images.activate(connection, image_id, cluster, copied):
            remove_image.drop(connection, self._cloud, image_id)
        if end.row is not None:
            volumes.end(connection, end.row, VolumeAction.UPLOAD, ok=True)

    # --- failure

    def uncertain(self) -> Callable[[Transaction, VolumeWork], None]:
        """Set the image to killed."""
        return uncertain.uploaded_volume

    def _remove(self, connection: Transaction, task: VolumeWork, _: Failure | None) -> VolumeWork:
        image_id = task.operation.ordered(Copy).image_id
        remove_image.drop(connection, self._cloud, image_id)
        return task

    def write_failed(self, connection: Transaction, end: End[VolumeWork, Copied]) -> None:
        """Set the volume to its previous status."""
        if end.row is not None:
            fault = end.failure.message
            volumes.end(connection, end.row, VolumeAction.UPLOAD, ok=False, fault=fault)

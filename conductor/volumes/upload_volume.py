"""Makes images of volumes: the disk is copied into a template of its cluster, as that of a server.

The volume is available again whatever comes of it; an image that could not be made is deleted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from common import clock, ids
from common.context import RequestContext
from common.errors import Invalid
from common.image_attributes import is_property
from common.log import logger
from common.messages.commands import Copy
from common.messages.reports import Category, Copied, Failure, Outcome
from common.messages.scheduling import ImageHome
from common.states import OperationState, ResourceType
from common.volumes import RULES, VolumeAction
from conductor.cloud import Cloud
from conductor.engine import begins, ends, unwinding
from conductor.engine.stages import Stage, Table, Undo
from conductor.images import remove_image
from conductor.plans import Place, UploadVolumePlan
from conductor.rpc.volumes import NewVolumeImage
from conductor.store import image_quota, leases, registry, server_images, vmids
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction
from conductor.store.volumes import records, snapshots
from conductor.volumes import uncertain
from conductor.volumes.load import VolumeWork, load

LOG = logger(__name__)

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
    image_quota.take(connection, str(ctxt.project_id), cloud.conf, {"image_count_total": 1})
    image_id = ids.new_uuid()
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
    item = begins.new(
        cloud,
        VolumeAction.UPLOAD,
        row.id,
        row.project_id,
        resource_type=ResourceType.VOLUME,
        plan=UploadVolumePlan(
            where,
            image_id=image_id,
            name=asked.name,
            disk_format=asked.disk_format,
            source_vmid=row.vmid,
            volid=row.volid,
        ),
    )
    begins.begin_later(connection, ctxt, item)
    records.show_begun(connection, row, VolumeAction.UPLOAD)
    return image_id


def properties(of_volume: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a volume's image gets from the one it was made of. Pure."""
    return {
        name: value
        for name, value in of_volume.items()
        if is_property(name) and name not in _CORE and not name.startswith(_RESERVED)
    }


class UploadVolumeFlow:
    """The flow of ``VolumeAction.UPLOAD``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[VolumeWork]:
        """Return the stages: the template's VMID is reserved before an agent makes it."""
        remove = Undo[VolumeWork]("remove_image", write=self._remove)
        return Table(
            (
                Stage("reserve", self._reserve, undo=remove),
                Stage("copy", self._copy, self._heard),
            ),
            lost=None,
            late=self._late,
            undone=self._undone,
            owns=False,
            load=load,
            uncertain=uncertain.uploaded_volume,
        )

    def _reserve(self, task: VolumeWork) -> VolumeWork:
        """Reserve the template's VMID. Raises BandExhausted to be tried again later."""
        return self._cloud.store.run(lambda c: self._save(c, task))

    def _save(self, connection: Transaction, task: VolumeWork) -> VolumeWork:
        operation = task.operation
        plan = operation.planned(UploadVolumePlan)
        target = plan.target
        facts, _ = registry.host(connection, str(target.host))
        vmid = vmids.reserve(connection, str(target.cluster), None, None)
        shared = any(one.shared for one in facts.storages if one.name == facts.vm_storage)
        home = ImageHome(str(target.cluster), facts.vm_storage, str(target.node), shared)
        plan = dataclasses.replace(
            plan, target=dataclasses.replace(target, vmid=vmid), storage=facts.vm_storage
        )
        leases.advance(connection, operation, plan, "copy", self._cloud.name)
        # After it was compared and set: another conductor may have gone on already.
        server_images.save(connection, plan.image_id, home, vmid)
        now = task.at("copy")
        return dataclasses.replace(now, operation=dataclasses.replace(now.operation, plan=plan))

    def _copy(self, task: VolumeWork) -> None:
        operation, where = task.operation, task.place
        plan = operation.planned(UploadVolumePlan)
        worker = self._cloud.take_to(operation, where.host)
        if worker is None:
            text = f"The agent of host {where.host} does not answer."
            self._failed(task, Failure(Category.NODE_UNHEALTHY, text, host=where.host))
            return
        command = Copy(
            operation.id,
            operation.attempt,
            operation.resource_id,
            where,
            operation.deadline or clock.utcnow(),
            source_vmid=plan.source_vmid,
            storage=plan.storage,
            image_id=plan.image_id,
            image_name=plan.name,
            volid=plan.volid,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: VolumeWork, outcome: Outcome) -> None:
        copied = outcome.copied
        if not outcome.ok or copied is None:
            unknown = Failure(Category.UNKNOWN_OUTCOME, "The agent says nothing of a copy.")
            self._failed(task, outcome.failure or unknown)
            return
        if self._cloud.store.run(lambda c: self._done(c, task, copied)):
            LOG.info("Image %s is active.", task.operation.planned(UploadVolumePlan).image_id)
        self._cloud.wake()

    def _done(self, connection: Transaction, task: VolumeWork, copied: Copied) -> bool:
        """End with the image active; return whether it is: it may have been deleted meanwhile."""
        operation = task.operation
        plan = operation.planned(UploadVolumePlan)
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return False
        copied = dataclasses.replace(copied, disk_format=plan.disk_format)
        cluster = str(plan.target.cluster)
        kept = server_images.activate(connection, plan.image_id, cluster, copied)
        if not kept:
            remove_image.drop(connection, self._cloud, plan.image_id)
        ledger.close(connection, operation.id, OperationState.DONE)
        if row is not None:
            records.end(connection, row, VolumeAction.UPLOAD, ok=True)
        return kept

    # --- failure

    def _failed(self, task: VolumeWork, failure: Failure) -> None:
        unwinding.again_or_begin(self._cloud, self.table(), task, failure)

    def _late(self, task: VolumeWork) -> None:
        text = "The image was not made in time."
        if task.operation.message:
            text += f" It waited: {task.operation.message}"
        unwinding.begin(self._cloud, self.table(), task, Failure(Category.TASK_TIMEOUT, text))

    def _remove(self, connection: Transaction, task: VolumeWork, _: Failure | None) -> VolumeWork:
        image_id = task.operation.planned(UploadVolumePlan).image_id
        remove_image.drop(connection, self._cloud, image_id)
        return task

    @staticmethod
    def _undone(connection: Transaction, task: VolumeWork) -> None:
        """End with the volume as it was."""
        operation = task.operation
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        ledger.close(connection, operation.id, OperationState.FAILED, operation.message)
        if row is not None:
            fault = operation.message
            records.end(connection, row, VolumeAction.UPLOAD, ok=False, fault=fault)

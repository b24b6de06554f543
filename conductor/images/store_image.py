"""Gives clusters what a user uploaded: one operation for each place that gets a file.

The image can be used as soon as one cluster has it. A place that fails is tried again until its
time has passed, or what failed can't get better; its file is removed then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common import clock, image_files
from common.context import RequestContext
from common.errors import Unavailable
from common.log import logger
from common.messages.commands import Placed, StoreImage
from common.messages.reports import Category, Failure, Outcome
from common.states import InternalAction, OperationState, ResourceType
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table, Work
from conductor.images import places, remove_file
from conductor.images.places import ImagePlace
from conductor.plans import Place, StoreImagePlan
from conductor.rpc.images import ImageData
from conductor.store import host_storages, image_quota, uploads
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.server_images import QUEUED
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: what doesn't get better by waiting
_HOPELESS = frozenset(
    {
        Category.IMAGE_CORRUPT,
        Category.IMAGE_NOT_FOUND,
        Category.API_NOT_SUPPORTED,
        Category.AUTHORIZATION,
        Category.CONFIGURATION,
        Category.PROTECTED,
    }
)


@dataclass(frozen=True)
class Storing(Work):
    """An operation of this flow, and whether its image is still there."""

    there: bool


def load(connection: Transaction, operation: Operation) -> Storing:
    """Read whether the image is there."""
    return Storing(operation, uploads.exists(connection, operation.resource_id))


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    row: Any,
    data: ImageData,
    was: str,
) -> None:
    """Begin on an image that is locked.

    Raises Conflict unless its status is ``was``, TooLarge over the project's quota, and
    Unavailable if no cluster has room for it.
    """
    more = {"image_size_total": data.size_bytes}
    if was == QUEUED:
        more["image_count_uploading"] = 1
    image_quota.take(connection, row.project_id, cloud.conf, more)
    uploads.begin(connection, row, data, was)
    content = image_files.content(data.disk_format)
    found = places.choose(host_storages.read(connection), content, data.size_bytes)
    if not found:
        raise Unavailable(f"No storage with content '{content}' has room for the image.")
    for place in found:
        begins.begin_later(connection, ctxt, _operation(cloud, row, data, place))


def _operation(cloud: Cloud, row: Any, data: ImageData, place: ImagePlace) -> Any:
    return begins.new(
        cloud,
        InternalAction.STORE_IMAGE,
        row.id,
        row.project_id,
        resource_type=ResourceType.IMAGE,
        plan=StoreImagePlan(
            Place(place.host, None, place.cluster, place.node),
            volid=image_files.volid(
                place.storage, cloud.id, row.id, data.sha512, data.disk_format
            ),
            url=data.url,
            token=data.token,
            size_bytes=data.size_bytes,
            sha512=data.sha512,
        ),
    )


class StoreImageFlow:
    """The flow of ``InternalAction.STORE_IMAGE``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Storing]:
        """Return the one stage: an agent uploads the file."""
        stage = Stage("store", self._send, self._heard)
        return Table(
            (stage,),
            lost=None,
            late=self._late,
            owns=False,
            load=load,
            uncertain=self._uncertain,
        )

    @staticmethod
    def _uncertain(connection: Transaction, task: Storing) -> None:
        """Have the image be killed, unless a cluster has it: the file isn't removed."""
        row = uploads.locked(connection, task.operation.resource_id)
        if row is not None:
            uploads.gave_up(connection, row, task.operation.id)

    def _late(self, task: Storing) -> None:
        failure = Failure(Category.TASK_TIMEOUT, "The cluster did not get the image in time.")
        self._give_up(task, failure)

    def _send(self, task: Storing) -> None:
        operation = task.operation
        plan = operation.planned(StoreImagePlan)
        target = plan.target
        if not task.there:
            self._give_up(task, Failure(Category.CREATION_FAILED, "The image was deleted."))
            return
        worker = self._cloud.take_to(operation, str(target.host))
        if worker is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        command = StoreImage(
            operation.id,
            operation.attempt,
            operation.resource_id,
            Placed(str(target.host), str(target.cluster), str(target.node), 0),
            operation.deadline or clock.utcnow(),
            volid=plan.volid,
            url=plan.url,
            token=plan.token,
            size_bytes=plan.size_bytes,
            sha512=plan.sha512,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: Storing, outcome: Outcome) -> None:
        """Store that the cluster has it; or why not, and try again where that may help."""
        operation = task.operation
        if outcome.ok:
            self._cloud.store.run(lambda c: self._stored(c, operation))
            self._cloud.wake()
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The image was not seen there.")
        failure = outcome.failure or unknown
        LOG.warning("Image %s: %s", operation.resource_id, failure.message)
        if failure.category in _HOPELESS or not task.there:
            self._give_up(task, failure)
        else:
            ends.again(self._cloud, operation, failure)

    def _stored(self, connection: Transaction, operation: Operation) -> None:
        plan = operation.planned(StoreImagePlan)
        cluster = str(plan.target.cluster)
        row = uploads.locked(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        if row is None:
            self._remove(connection, operation)
        else:
            uploads.stored(connection, row, cluster, plan.volid)
            LOG.info("Image %s is %s in cluster %s.", row.id, plan.volid, cluster)
        ledger.close(connection, operation.id, OperationState.DONE)

    def _remove(self, connection: Transaction, operation: Operation) -> None:
        plan = operation.planned(StoreImagePlan)
        image_id = operation.resource_id
        remove_file.begin(connection, self._cloud, image_id, plan.target, plan.volid)

    def _give_up(self, task: Storing, failure: Failure) -> None:
        operation = task.operation

        def work(connection: Transaction) -> None:
            row = uploads.locked(connection, operation.resource_id)
            if ends.has_ended(connection, operation):
                return
            if row is not None:
                uploads.gave_up(connection, row, operation.id)
            self._remove(connection, operation)
            ends.close_failed(connection, operation, failure)

        self._cloud.store.run(work)
        self._cloud.wake()

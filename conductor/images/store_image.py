"""Copies an uploaded image to clusters: one operation for each storage that gets a file.

The image can be used as soon as one cluster has its file. A failed copy is tried again until its
deadline, unless the failure is permanent; then the file is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from common.context import RequestContext
from common.errors import Unavailable
from common.messages.commands import StoreImage
from common.messages.reports import Category, Outcome
from common.resources import image_files
from common.resources.states import InternalAction, ResourceType
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Work
from conductor.images import places, remove_file
from conductor.images.places import ImagePlace
from conductor.plans import CommandPlan, Place
from conductor.rpc.images import ImageData
from conductor.store.hosts import host_storages
from conductor.store.images import uploads
from conductor.store.images.server_images import QUEUED
from conductor.store.quotas import image_quotas
from conductor.store.records import Operation
from conductor.store.transactions import Transaction


@dataclass(frozen=True)
class Storing(Work):
    """An operation of this flow, and whether its image is still there."""

    there: bool


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
    image_quotas.take(connection, row.project_id, cloud.conf, more)
    uploads.begin(connection, row, data, was)
    content = image_files.content(data.disk_format)
    found = places.choose(host_storages.read(connection), content, data.size_bytes)
    if not found:
        raise Unavailable(f"No storage with content '{content}' has room for the image.")
    for place in found:
        start.begin_later(connection, ctxt, _operation(cloud, row, data, place))


def _operation(cloud: Cloud, row: Any, data: ImageData, place: ImagePlace) -> Any:
    plan = CommandPlan(
        Place(place.host, None, place.cluster, place.node),
        StoreImage(
            volid=image_files.volid(
                place.storage, cloud.id, row.id, data.sha512, data.disk_format, row.project_id
            ),
            url=data.url,
            token=data.token,
            size_bytes=data.size_bytes,
            sha512=data.sha512,
        ),
    )
    resource = (ResourceType.IMAGE, row.id)
    return start.new(cloud, InternalAction.STORE_IMAGE, resource, row.project_id, plan)


class StoreImageFlow(OneCommand[Storing, Outcome]):
    """The flow of ``InternalAction.STORE_IMAGE``."""

    stage = "store"
    sends = StoreImage
    unseen = "The image was not seen there."
    late = "The cluster did not get the image in time."
    hopeless = frozenset(
        {
            Category.IMAGE_CORRUPT,
            Category.IMAGE_NOT_FOUND,
            Category.API_NOT_SUPPORTED,
            Category.AUTHORIZATION,
            Category.CONFIGURATION,
            Category.PROTECTED,
        }
    )

    def load(self, connection: Transaction, operation: Operation) -> Storing:
        """Read whether the image is there."""
        return Storing(operation, uploads.exists(connection, operation.resource_id))

    def unwanted(self, task: Storing) -> str | None:
        """Return that the image is deleted."""
        return None if task.there else "The image was deleted."

    def on_no_agent(self, task: Storing) -> None:
        """Wait for it until the deadline."""
        self.wait(task)

    def lock(self, connection: Transaction, task: Storing) -> Any:
        """Lock the image, and return its row; None: it is gone."""
        return uploads.locked(connection, task.operation.resource_id)

    def write_done(self, connection: Transaction, end: End[Storing, Outcome]) -> None:
        """Record that the cluster has the file, or begin to remove it if the image is deleted."""
        if end.row is None:
            self._remove(connection, end.operation)
        else:
            volid = end.operation.ordered(StoreImage).volid
            uploads.stored(connection, end.row, str(end.operation.plan.target.cluster), volid)

    def write_failed(self, connection: Transaction, end: End[Storing, Outcome]) -> None:
        """Give the storage up, and begin to remove what may have been written."""
        if end.row is not None:
            uploads.gave_up(connection, end.row, end.operation.id)
        self._remove(connection, end.operation)

    def uncertain(self) -> Callable[[Transaction, Storing], None]:
        """Set the image to ``killed``, unless it is in a cluster; the file isn't removed."""

        def write(connection: Transaction, task: Storing) -> None:
            row = self.lock(connection, task)
            if row is not None:
                uploads.gave_up(connection, row, task.operation.id)

        return write

    def _remove(self, connection: Transaction, operation: Operation) -> None:
        image_id, volid = operation.resource_id, operation.ordered(StoreImage).volid
        remove_file.begin(connection, self._cloud, image_id, operation.plan.target, volid)

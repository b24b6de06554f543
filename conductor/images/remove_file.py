"""Removes the files of uploaded images that were deleted, or are incomplete in a cluster.

A removal is repeated until the file is confirmed absent; the audit finds files that are left.
"""

from __future__ import annotations

from typing import Any

from common.context import internal
from common.messages.commands import RemoveImage
from common.resources.states import InternalAction, ResourceType
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.removal import Removal
from conductor.engine.stages import Work
from conductor.images import places
from conductor.plans import CommandPlan, Place
from conductor.store.hosts import host_storages
from conductor.store.images import uploads
from conductor.store.records import Operation
from conductor.store.transactions import Transaction


def begin(
    connection: Transaction, cloud: Cloud, image_id: str, where: Place, volid: str
) -> Operation:
    """Write a removal, due at once."""
    plan = CommandPlan(where, RemoveImage(volid=volid))
    item = start.new(cloud, InternalAction.REMOVE_IMAGE, (ResourceType.IMAGE, image_id), "", plan)
    return start.begin_later(connection, internal(), item)


def begin_all(connection: Transaction, cloud: Cloud, row: Any) -> None:
    """Write the removals of all files of an image."""
    for cluster, volid in uploads.volumes(row):
        hosts = host_storages.read(connection, cluster)
        for place in places.of_volume(hosts, volid.partition(":")[0]):
            where = Place(place.host, None, place.cluster, place.node)
            begin(connection, cloud, row.id, where, volid)


class RemoveFileFlow(Removal[Work]):
    """The flow of ``InternalAction.REMOVE_IMAGE``."""

    stage = "remove"
    sends = RemoveImage
    unseen = "The file was not seen gone."
    quick = False
    wakes = False

    def load(self, connection: Transaction, operation: Operation) -> Work:
        """Return the operation alone: its plan has all that is needed."""
        return Work(operation)

"""Removes the files of uploaded images that were deleted, or that a cluster has by half.

It is repeated until the file was seen gone; the audit finds what stays nevertheless.
"""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import internal
from common.log import logger
from common.messages.commands import Placed, RemoveImage
from common.messages.reports import Category, Failure, Outcome
from common.states import InternalAction, OperationState, ResourceType
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table, Work
from conductor.images import places
from conductor.plans import Place, RemoveImagePlan
from conductor.store import host_storages, uploads
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: seconds between two tries, and their number: about a week
AGAIN_SECONDS = 600.0
MOST_TRIES = 1000


def begin(
    connection: Transaction, cloud: Cloud, image_id: str, where: Place, volid: str
) -> Operation:
    """Write a removal, due at once."""
    item = begins.new(
        cloud,
        InternalAction.REMOVE_IMAGE,
        image_id,
        "",
        resource_type=ResourceType.IMAGE,
        plan=RemoveImagePlan(where, volid),
    )
    return begins.begin_later(connection, internal(), item)


def begin_all(connection: Transaction, cloud: Cloud, row: Any) -> None:
    """Write the removals of all files of an image."""
    for cluster, volid in uploads.volumes(row):
        hosts = host_storages.read(connection, cluster)
        for place in places.of_volume(hosts, volid.partition(":")[0]):
            where = Place(place.host, None, place.cluster, place.node)
            begin(connection, cloud, row.id, where, volid)


def load(_: Transaction, operation: Operation) -> Work:
    """Return the operation alone: its plan has all that is needed."""
    return Work(operation)


class RemoveFileFlow:
    """The flow of ``InternalAction.REMOVE_IMAGE``: past the point of no return, so repeated."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Work]:
        """Return the one stage: an agent removes the file."""
        stage = Stage("remove", self._send, self._heard, final=True)
        return Table((stage,), lost=None, owns=False, load=load)

    def _send(self, task: Work) -> None:
        operation = task.operation
        plan = operation.planned(RemoveImagePlan)
        target = plan.target
        worker = self._cloud.take_to(operation, str(target.host))
        if worker is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        command = RemoveImage(
            operation.id,
            operation.attempt,
            operation.resource_id,
            Placed(str(target.host), str(target.cluster), str(target.node), 0),
            clock.after(self._cloud.conf.conductor.action_timeout_seconds),
            volid=plan.volid,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: Work, outcome: Outcome) -> None:
        operation = task.operation
        volid = operation.planned(RemoveImagePlan).volid
        if outcome.gone:
            self._cloud.store.run(lambda c: ledger.close(c, operation.id, OperationState.DONE))
            LOG.info("%s is removed.", volid)
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The file was not seen gone.")
        failure = outcome.failure or unknown
        LOG.warning("%s could not be removed: %s", volid, failure.message)
        if operation.attempt >= MOST_TRIES or failure.category is Category.PROTECTED:
            self._cloud.store.run(lambda c: ends.close_failed(c, operation, failure))
            return
        until = clock.after(AGAIN_SECONDS + self._cloud.conf.conductor.action_timeout_seconds)
        ends.again(
            self._cloud,
            operation,
            failure,
            lambda c: ledger.save(c, operation.id, deadline=until),
            AGAIN_SECONDS,
        )

"""Caches an image on a host ahead of any build, by making its template.

It is tried once: a failure is shown, and the first build makes the template.
"""

from __future__ import annotations

from common import clock
from common.context import RequestContext
from common.log import logger
from common.messages.commands import CacheImage, Image
from common.messages.facts import HostFacts
from common.messages.reports import Category, Failure, Outcome
from common.states import InternalAction, OperationState, ResourceType
from conductor.cloud import Cloud, placed
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table, Work
from conductor.plans import CacheImagePlan, Place
from conductor.store import operations as ledger
from conductor.store import templates
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction

LOG = logger(__name__)


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, facts: HostFacts, image: Image
) -> Operation | None:
    """Reserve the template and write the operation, due at once; None: it is being removed."""
    template = templates.reserve(connection, facts, image.id)
    if template is None:
        return None
    where = Place(facts.host, facts.uuid, facts.cluster, facts.node, template.vmid)
    item = begins.new(
        cloud,
        InternalAction.CACHE_IMAGE,
        image.id,
        ctxt.project_id or "",
        resource_type=ResourceType.IMAGE,
        plan=CacheImagePlan(where, image, template, facts.vm_storage or None),
    )
    return begins.begin_later(connection, ctxt, item)


def load(_: Transaction, operation: Operation) -> Work:
    """Return the operation alone: its plan has all that is needed."""
    return Work(operation)


class Cache:
    """The flow of ``InternalAction.CACHE_IMAGE``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Work]:
        """Return the one stage: an agent makes the template."""
        stage = Stage("make_template", self._send, self._heard)
        return Table((stage,), lost=None, late=self._late, owns=False, load=load)

    def _late(self, task: Work) -> None:
        self._fail(task, Failure(Category.TASK_TIMEOUT, "It did not end in time."))

    def _send(self, task: Work) -> None:
        operation, where = task.operation, placed(task.operation)
        plan = operation.planned(CacheImagePlan)
        if where is None:
            return
        worker = self._cloud.take_to(operation, where.host)
        if worker is None:
            text = f"The agent of host {where.host} does not answer."
            self._fail(task, Failure(Category.NODE_UNHEALTHY, text, host=where.host))
            return
        command = CacheImage(
            operation.id,
            operation.attempt,
            f"{where.cluster}/{where.vmid}",
            where,
            operation.deadline or clock.utcnow(),
            storage=plan.storage,
            image=plan.image,
            template=plan.template,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: Work, outcome: Outcome) -> None:
        """Store that it is ready, or why not, which the list of VMIDs shows."""
        if not outcome.ok:
            unknown = Failure(Category.UNKNOWN_OUTCOME, "The template was not seen there.")
            self._fail(task, outcome.failure or unknown)
            return
        self._cloud.store.run(lambda c: self._ready(c, task.operation))
        LOG.info("Image %s is cached.", task.operation.resource_id)

    @staticmethod
    def _ready(connection: Transaction, operation: Operation) -> None:
        target = operation.plan.target
        templates.ready(connection, str(target.cluster), int(target.vmid or 0))
        ledger.close(connection, operation.id, OperationState.DONE)

    def _fail(self, task: Work, failure: Failure) -> None:
        target = task.operation.plan.target

        def work(connection: Transaction) -> None:
            why = templates.why(failure, str(target.host))
            templates.failed(connection, str(target.cluster), int(target.vmid or 0), why)
            ends.close_failed(connection, task.operation, failure)

        self._cloud.store.run(work)
        LOG.warning(
            "Image %s could not be cached: %s", task.operation.resource_id, failure.message
        )

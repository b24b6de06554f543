"""Caches an image on a host ahead of any build, by making its template.

It is tried once: a failure is shown, and the first build makes the template.
"""

from __future__ import annotations

from common.context import RequestContext
from common.messages.commands import CacheImage, Image
from common.messages.facts import HostFacts
from common.messages.reports import Built, Category
from common.resources.states import InternalAction, ResourceType
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Work
from conductor.plans import CommandPlan, Place
from conductor.store.images import templates
from conductor.store.records import Operation
from conductor.store.transactions import Transaction


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, facts: HostFacts, image: Image
) -> Operation | None:
    """Reserve the template and write the operation, due at once; None: it is being removed."""
    template = templates.reserve(connection, facts, image.id)
    if template is None:
        return None
    where = Place(facts.host, facts.uuid, facts.cluster, facts.node, template.vmid)
    command = CacheImage(image=image, template=template, storage=facts.vm_storage or None)
    plan = CommandPlan(where, command)
    resource = (ResourceType.IMAGE, image.id)
    item = start.new(cloud, InternalAction.CACHE_IMAGE, resource, ctxt.project_id or "", plan)
    return start.begin_later(connection, ctxt, item)


class Cache(OneCommand[Work, Built]):
    """The flow of ``InternalAction.CACHE_IMAGE``. What fails is shown by the list of VMIDs."""

    stage = "make_template"
    unseen = "The template was not seen there."
    late = "It did not end in time."
    hopeless = frozenset(Category)
    wakes = False

    def load(self, connection: Transaction, operation: Operation) -> Work:
        """Return the operation alone: its plan has all that is needed."""
        return Work(operation)

    def command(self, task: Work) -> CacheImage:
        """Return what makes the template."""
        target = task.operation.plan.target
        made = (ResourceType.TEMPLATE, f"{target.cluster}/{target.vmid}")
        return self.planned(task, CacheImage, made)

    def write_done(self, connection: Transaction, end: End[Work, Built]) -> None:
        """Note that the template is ready."""
        target = end.operation.plan.target
        templates.ready(connection, str(target.cluster), int(target.vmid or 0))

    def write_failed(self, connection: Transaction, end: End[Work, Built]) -> None:
        """Note why there is none."""
        target = end.operation.plan.target
        why = templates.why(end.failure, str(target.host))
        templates.failed(connection, str(target.cluster), int(target.vmid or 0), why)

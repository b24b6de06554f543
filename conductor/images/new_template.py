"""Reserves the template that an image is to be: a VMID on the host that the plan names."""

from __future__ import annotations

import dataclasses

from common.messages.commands import Copy
from common.messages.scheduling import ImageHome
from conductor.cloud import Cloud
from conductor.engine.stages import W
from conductor.plans import CommandPlan
from conductor.store.hosts import registry
from conductor.store.images import server_images
from conductor.store.ledger import leases
from conductor.store.servers import vmids
from conductor.store.transactions import Transaction


def reserve(connection: Transaction, cloud: Cloud, task: W, stage: str) -> W:
    """Store a VMID, where the image of the plan's ``Copy`` will be, and the stage that follows.

    Return the task as stored. Raises BandExhausted.
    """
    operation = task.operation
    plan, target = operation.planned(CommandPlan), operation.plan.target
    facts, _ = registry.host(connection, str(target.host))
    vmid = vmids.reserve(connection, str(target.cluster), None, None)
    shared = any(one.shared for one in facts.storages if one.name == facts.vm_storage)
    home = ImageHome(str(target.cluster), facts.vm_storage, str(target.node), shared)
    plan = dataclasses.replace(
        plan.with_fields(storage=facts.vm_storage), target=dataclasses.replace(target, vmid=vmid)
    )
    leases.advance(connection, operation, plan, stage, cloud.name)
    # After it was compared and set: another conductor may have gone on already.
    server_images.save(connection, operation.ordered(Copy).image_id, home, vmid)
    now = task.at(stage)
    return dataclasses.replace(now, operation=dataclasses.replace(now.operation, plan=plan))

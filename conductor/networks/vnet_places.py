"""Which host's agent makes and removes the vnets of a zone."""

from __future__ import annotations

import dataclasses

from conductor.cloud import Cloud
from conductor.engine.stages import W
from conductor.plans import Place, Plan
from conductor.store.ledger import operations as ledger
from conductor.store.networks import vnets
from conductor.store.transactions import Transaction


def of_vnet(connection: Transaction, cloud: Cloud, cluster: str, zone: str) -> Place:
    """Return the first host of the zone whose agent answers: one does so for the whole cluster.

    None of them answers: another one of the cluster, as the zone may be gone with its vnets; else
    a place without a host.
    """
    mine = [one for one in vnets.zone_hosts(connection) if one.cluster == cluster]
    for one in sorted(mine, key=lambda one: zone not in one.zones):
        if cloud.worker_of(connection, one.host) is not None:
            return Place(one.host, None, cluster, one.node)
    return Place(cluster=cluster)


def reach(cloud: Cloud, task: W, zone: str) -> tuple[str, W] | None:
    """Give the lease to the worker of the plan's place, or of another one of the zone.

    Return it and the task, whose plan names the place: its agent alone is believed. None: no agent
    answers.
    """
    operation, plan = task.operation, task.operation.plan
    worker = None if plan.target.host is None else cloud.take_to(operation, plan.target.host)
    if worker is not None:
        return worker, task

    def work(connection: Transaction) -> Plan:
        where = of_vnet(connection, cloud, str(plan.target.cluster), zone)
        changed = dataclasses.replace(plan, target=where)
        if where.host is not None:
            ledger.save(connection, operation.id, plan=changed)
        return changed

    changed = cloud.store.run(work)
    host = changed.target.host
    worker = None if host is None else cloud.take_to(operation, host)
    if worker is None:
        return None
    moved = dataclasses.replace(operation, plan=changed)
    return worker, dataclasses.replace(task, operation=moved)

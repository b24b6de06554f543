"""Which host's agent makes and removes the vnets of a zone."""

from __future__ import annotations

import dataclasses

from conductor.cloud import Cloud
from conductor.plans import Place, VnetPlan
from conductor.store import operations as ledger
from conductor.store import vnets
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.vnets import Vnet


def of_vnet(connection: Transaction, cloud: Cloud, vnet: Vnet) -> Place:
    """Return the first host of the zone whose agent answers: one does so for the whole cluster.

    None of them answers: another one of the cluster, as the zone may be gone with its vnets; else
    a place without a host.
    """
    mine = [one for one in vnets.zone_hosts(connection) if one.cluster == vnet.cluster]
    for one in sorted(mine, key=lambda one: vnet.zone not in one.zones):
        if cloud.worker_of(connection, one.host) is not None:
            return Place(one.host, None, vnet.cluster, one.node)
    return Place(cluster=vnet.cluster)


def take(cloud: Cloud, operation: Operation, vnet: Vnet) -> tuple[str, Place] | None:
    """Pass an operation's lease to the worker of its place, or of another one of the zone.

    Return the worker and the place, which the plan names then: its agent alone is believed. None:
    no agent answers.
    """
    plan = operation.planned(VnetPlan)
    worker = None if plan.target.host is None else cloud.take_to(operation, plan.target.host)
    if worker is not None:
        return worker, plan.target

    def work(connection: Transaction) -> Place:
        where = of_vnet(connection, cloud, vnet)
        if where.host is not None:
            changed = dataclasses.replace(plan, target=where)
            ledger.save(connection, operation.id, plan=changed)
        return where

    where = cloud.store.run(work)
    worker = None if where.host is None else cloud.take_to(operation, where.host)
    return None if worker is None else (worker, where)

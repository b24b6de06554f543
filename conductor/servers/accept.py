"""Begins actions on servers: writes the operation and the first state in one transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from common.context import RequestContext
from common.messages.reports import Step
from common.resources import locks, states
from common.resources.states import (
    ACTIONS,
    SHELVED,
    SOFT_DELETABLE,
    TaskState,
    VmState,
)
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import check_state, scope
from conductor.engine.start import HandedOver
from conductor.plans import PLANS, DeletePlan, Plan
from conductor.servers.remove import delete
from conductor.store.images import server_images
from conductor.store.ledger import operations as ledger
from conductor.store.quotas import quotas
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations, servers
from conductor.store.transactions import Transaction
from conductor.volumes import host_pins

#: the task states of moves whose migration is open: only a delete interrupts them
MOVING = frozenset(
    task for name in ("resize", "live-migration", "unshelve") for task in ACTIONS[name].walk
)
#: a server in one of these states may have an open migration
_MAY_HAVE_MOVED = (VmState.RESIZED, VmState.ERROR)

#: a delete that can be undone, and the action that undoes it
SOFT_DELETE, RESTORE = "soft-delete", "restore"


class Accept:
    """Begins operations."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def act(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        action: str,
        values: Mapping[str, Any] | None = None,
        plan: Callable[[Transaction, Server], Plan] | None = None,
    ) -> Operation | None:
        """Begin an action on a server; None if the same one is in progress already.

        ``values`` are columns of the server that change with it; ``plan`` refuses what is asked,
        or returns it as the operation's plan.
        """
        return self._cloud.store.run(
            lambda connection: self._act(connection, ctxt, server_uuid, action, values, plan)
        )

    def _act(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        server_uuid: str,
        action: str,
        values: Mapping[str, Any] | None = None,
        planned: Callable[[Transaction, Server], Plan] | None = None,
    ) -> Operation | None:
        server = servers.alive(connection, server_uuid, scope(ctxt))
        locks.check(server.uuid, server.locked_by, is_admin=bool(ctxt.is_admin))
        if action == SOFT_DELETE and not _restorable(server):
            action = "delete"
        if _is_being_deleted(server, action):
            return None
        check_state(server, action)
        host_pins.require_none(connection, server, action)
        quota = self._take_back(connection, server) if action == RESTORE else None
        plan = PLANS.get(action, Plan)() if planned is None else planned(connection, server)
        if action == "delete" and (
            server.vm_state in _MAY_HAVE_MOVED or server.task_state in MOVING
        ):
            plan = DeletePlan(
                holders=(
                    *_held_by_former(connection, server),
                    *migrations.end_open(connection, server.uuid),
                )
            )
        if action == "delete" and server.vm_state in SHELVED:
            # It is listed among the images.
            server_images.forget_parked(connection, server.uuid)
        handed_over = self.hand_over(connection, server) if action == "delete" else None
        which = (self._cloud, ctxt, server, action, plan)
        more = {"handed_over": handed_over, "quota": quota, **(values or {})}
        operation, taken = start.take(connection, *which, **more)
        # A delete begins on the record as it was written here.
        return dataclasses.replace(operation, begun_on=taken) if action == "delete" else operation

    def reclaim(self, ctxt: RequestContext, server_uuid: str) -> Operation | None:
        """Delete a soft-deleted server for good; None if it is none any more."""

        def work(connection: Transaction) -> Operation | None:
            server = servers.alive(connection, server_uuid, None)
            if server.vm_state != VmState.SOFT_DELETED or server.task_state is not None:
                return None
            return self._act(connection, ctxt, server_uuid, "delete")

        return self._cloud.store.run(work)

    def _take_back(self, connection: Transaction, server: Server) -> Step:
        """Take what a soft-deleted server has from the quota again. Raises QuotaExceeded."""
        each = {"instances": 1, "cores": server.vcpus, "ram": server.memory_mib}
        return quotas.take(connection, server.project_id, self._cloud.quota, each)

    def hand_over(self, connection: Transaction, server: Server) -> HandedOver | None:
        """Return the worker that gets a delete's one command, and with it the lease."""
        if server.host is None or server.vmid is None:
            return None
        worker = self._cloud.worker_of(connection, server.host)
        return None if worker is None else HandedOver(worker, delete.STAGE)


def _held_by_former(connection: Transaction, server: Server) -> tuple[str, ...]:
    """Return what an overdue delete, which shows ERROR and is taken over, had still to release."""
    former = None if server.operation_id is None else ledger.get(connection, server.operation_id)
    plan = None if former is None or former.state not in states.OPEN_STATES else former.plan
    return plan.holders if isinstance(plan, DeletePlan) else ()


def _restorable(server: Server) -> bool:
    """Return whether it could be restored as it was: it ran, and has its own disk and size."""
    known = server.vm_state in {*SOFT_DELETABLE, VmState.SOFT_DELETED}
    return known and server.launched_at is not None


def _is_being_deleted(server: Server, action: str) -> bool:
    """Return whether the server is already deleted, or being deleted, as this action would do."""
    if action == SOFT_DELETE and server.vm_state == VmState.SOFT_DELETED:
        return server.task_state in {None, TaskState.DELETING}
    if action == SOFT_DELETE:
        return server.task_state in {TaskState.DELETING, TaskState.SOFT_DELETING}
    return action == "delete" and server.task_state == TaskState.DELETING

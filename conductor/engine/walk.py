"""Moves a build to its next stage: the server's state and the plan, in one transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from common.errors import StaleTransition
from common.states import TaskState, VmState
from conductor.plans import Plan
from conductor.store import leases, transitions
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction

#: the stage of a build by the task_state; each shows one
STAGES: Mapping[TaskState, str] = {
    TaskState.SCHEDULING: "place",
    TaskState.NETWORKING: "network",
    TaskState.BLOCK_DEVICE_MAPPING: "map_disk",
    TaskState.SPAWNING: "spawn",
}


def must_build(operation: Operation, server: Server) -> None:
    """Raise StaleTransition for a server whose build is over, whoever has the operation."""
    if server.vm_state != VmState.BUILDING:
        raise StaleTransition(server_uuid=server.uuid, operation_id=operation.id)


def step_on(
    connection: Transaction,
    owner: str,
    operation: Operation,
    server: Server,
    plan: Plan,
    **values: Any,
) -> tuple[Operation, Server]:
    """Move the server to the next task_state of its build, and store what was decided.

    The stage that follows is stored with it. If nothing was decided the task_state alone says
    which it is.

    ``owner`` is the conductor that must have the lease; ``values`` are further columns of the
    server. Returns both as they now are. Raises StaleTransition, also if the build has ended.
    """
    must_build(operation, server)
    following = transitions.next_task("create", server.task_state)
    server = transitions.move(
        connection,
        server,
        operation_id=operation.id,
        vm_state=VmState.BUILDING,
        task_state=following,
        **values,
    )
    stage = STAGES[following] if following is not None else None
    if plan != operation.plan:
        leases.advance(connection, operation, plan, stage, owner)
    return dataclasses.replace(operation, plan=plan, stage=stage), server

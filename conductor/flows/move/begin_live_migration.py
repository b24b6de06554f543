"""Accepts live migrations, in one transaction."""

from __future__ import annotations

import dataclasses

from common import locks
from common.context import RequestContext
from common.errors import Invalid
from common.messages.facts import HostFacts
from common.migrations import MigrationStatus, MigrationType
from common.states import TaskState, VmState
from conductor.cloud import Cloud
from conductor.engine import begins
from conductor.flows.accept import check_state, scope
from conductor.flows.move import destination
from conductor.plans import LiveMigrationPlan, Place
from conductor.store import migrations, registry, servers, transitions
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction

ACTION = "live-migration"
PRE_CHECK = "Migration pre-check error: {}"


def accept(
    cloud: Cloud,
    ctxt: RequestContext,
    server_uuid: str,
    host: str | None,
    copy_disks: bool | None,
) -> Operation:
    """See ``ConductorClient.live_migrate_server``."""
    return cloud.store.run(lambda c: begin(cloud, c, ctxt, server_uuid, host, copy_disks))


def begin(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    server_uuid: str,
    host: str | None = None,
    copy_disks: bool | None = None,
) -> Operation:
    """Begin a live migration; see ``ConductorClient.live_migrate_server``."""
    server = servers.alive(connection, server_uuid, scope(ctxt))
    locks.check(server.uuid, server.locked_by, is_admin=bool(ctxt.is_admin))
    check_state(server, ACTION)
    _check_host(connection, server, host)
    here = destination.movable_from(connection, server)
    if isinstance(here, str):
        raise Invalid(PRE_CHECK.format(f"{here}."))
    why = destination.out_of_reach(connection, server, host)
    if why is not None:
        raise Invalid(PRE_CHECK.format(f"{why}."))
    return _begin(cloud, connection, ctxt, server, here, host, copy_disks)


def _begin(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    server: Server,
    here: HostFacts,
    host: str | None,
    copy_disks: bool | None,
) -> Operation:
    # One that was left when the server went to ERROR.
    migrations.end_open(connection, server.uuid)
    row = migrations.insert(
        connection,
        str(ctxt.user_id),
        server,
        dict(server.flavor),
        kind=MigrationType.LIVE,
        status=MigrationStatus.PREPARING,
    )
    plan = LiveMigrationPlan(
        source=place(here, server.vmid),
        migration_id=row.id,
        holder=row.uuid,
        asked_host=host,
        copy_disks=copy_disks,
    )
    operation = begins.begin(connection, cloud, ctxt, server, ACTION, plan)
    migrations.set_status(connection, row.id, MigrationStatus.PREPARING, operation)
    moved = transitions.move(
        connection,
        server,
        operation_id=operation.id,
        vm_state=VmState(server.vm_state),
        task_state=TaskState.MIGRATING,
        takes_over=True,
    )
    # The first commit that follows is made only if no other operation has the server by then.
    return dataclasses.replace(operation, begun_on=moved)


def place(facts: HostFacts, vmid: int | None) -> Place:
    """Return a host as a place of a plan."""
    return Place(facts.host, facts.uuid, facts.cluster, facts.node, vmid)


def _check_host(connection: Transaction, server: Server, host: str | None) -> None:
    """Raise Invalid for a host that it can't go to, in Nova's words; HostNotFound."""
    if host is None:
        return
    if host == server.host:
        raise Invalid(f"Unable to migrate instance ({server.uuid}) to current host ({host}).")
    facts, _ = registry.host(connection, host)
    if facts.cluster != server.cluster:
        why = f"host {host} is in cluster {facts.cluster}, and it can't leave {server.cluster}."
        raise Invalid(PRE_CHECK.format(why))

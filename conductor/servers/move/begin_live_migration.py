"""Accepts live migrations, in one transaction."""

from __future__ import annotations

import dataclasses

from common.context import RequestContext
from common.errors import Invalid
from common.messages.commands import Move
from common.messages.facts import HostFacts
from common.resources.migrations import MigrationStatus, MigrationType
from conductor.cloud import Cloud
from conductor.engine import access, start
from conductor.plans import LiveMigrationPlan, Place
from conductor.servers.move import destination
from conductor.store.hosts import registry
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations
from conductor.store.transactions import Transaction
from conductor.volumes import placement_request

ACTION = "live-migration"
PRE_CHECK = "Migration pre-check error: {}"


def accept(
    cloud: Cloud,
    ctxt: RequestContext,
    server_uuid: str,
    host: str | None,
    copy_disks: bool | None,
    *,
    checks_storage: bool = False,
) -> Operation:
    """See ``ConductorRpc.live_migrate_server``."""

    def work(connection: Transaction) -> Operation:
        return begin(
            cloud, connection, ctxt, server_uuid, host, copy_disks, checks_storage=checks_storage
        )

    return cloud.store.run(work)


def begin(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    server_uuid: str,
    host: str | None = None,
    copy_disks: bool | None = None,
    *,
    checks_storage: bool = False,
) -> Operation:
    """Begin a live migration; see ``ConductorRpc.live_migrate_server``."""
    server = access.free(connection, ctxt, server_uuid, ACTION)
    _check_host(connection, server, host)
    here = destination.movable_from(connection, server)
    if isinstance(here, str):
        raise Invalid(PRE_CHECK.format(f"{here}."))
    why = destination.out_of_reach(connection, server, host)
    if why is not None:
        raise Invalid(PRE_CHECK.format(f"{why}."))
    if checks_storage:
        _check_storage(connection, server, here, copy_disks)
    return _begin(cloud, connection, ctxt, server, here, host, copy_disks)


def _check_storage(
    connection: Transaction, server: Server, here: HostFacts, copy_disks: bool | None
) -> None:
    """Raise Invalid, in Nova's words, where the disks are on no storage for what is asked."""
    shared = _on_shared_storage(connection, server, here)
    if copy_disks is True and shared is True:
        raise Invalid(
            f"{server.host} is not on local storage: Block migration can not be used with shared "
            "storage."
        )
    if copy_disks is False and shared is False:
        raise Invalid(
            f"{server.host} is not on shared storage: Shared storage live-migration requires "
            "either shared storage or boot-from-volume with no local disks."
        )


def _on_shared_storage(connection: Transaction, server: Server, here: HostFacts) -> bool | None:
    """Return whether all disks of a server are on shared storage; None: it isn't known."""
    needed = placement_request.of_servers(connection, [server.uuid]).get(server.uuid, ())
    if any(one.node is not None for one in needed):
        return False
    if server.volume_backed and not server.flavor.get("ephemeral_gib"):
        return True
    known = {one.name: one.shared for one in here.storages}
    return known.get(here.vm_storage)


def _begin(
    cloud: Cloud,
    connection: Transaction,
    ctxt: RequestContext,
    server: Server,
    here: HostFacts,
    host: str | None,
    copy_disks: bool | None,
) -> Operation:
    # A migration that was still open when the server became ERROR.
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
        command=Move(live=True, copy_disks=copy_disks),
    )
    operation, moved = start.take(connection, cloud, ctxt, server, ACTION, plan)
    migrations.set_status(connection, row.id, MigrationStatus.PREPARING, operation)
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

"""The RPC endpoint of servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.context import RequestContext
from common.errors import Conflict, Invalid
from common.log import logger
from common.resources import locks
from common.resources.states import ResourceType, VmState
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.engine.runner import Begin, Runner
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import (
    CreatedServers,
    CreateServers,
    NewServerImage,
    RebuildServer,
)
from conductor.servers.accept import SOFT_DELETE, Accept
from conductor.servers.begin_delete import DeleteAcceptance
from conductor.servers.create.begin_create import CreateAcceptance
from conductor.servers.disks import begin_image, begin_unshelve
from conductor.servers.disks.begin_rebuild import CHANGEABLE as REBUILT
from conductor.servers.disks.begin_rebuild import RebuildAcceptance
from conductor.servers.disks.begin_rescue import RescueAcceptance
from conductor.servers.move import begin_evacuation, begin_live_migration, steer_migration
from conductor.servers.move.begin_resize import ResizeAcceptance
from conductor.servers.power import suspendable
from conductor.servers.record import lock, reset_state
from conductor.store.quotas import quotas
from conductor.store.records import Operation, Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: columns of a server that its users change
CHANGEABLE = frozenset(
    {
        *("name", "description", "hostname", "auto_disk_config"),
        *("access_ip_v4", "access_ip_v6", "pinned_availability_zone"),
    }
)


class ServerEndpoint:
    """See ``conductor.rpc.ServerRpc``."""

    def __init__(self, cloud: Cloud, runner: Runner, begin_builds: Begin) -> None:
        self._cloud = cloud
        self._runner = runner
        self._begin_builds = begin_builds
        self._accept = Accept(cloud)
        self._creates = CreateAcceptance(cloud)
        self._deletes = DeleteAcceptance(cloud, self._accept)
        self._resizes = ResizeAcceptance(cloud)
        self._rebuilds = RebuildAcceptance(cloud)
        self._defers = cloud.conf.conductor.reclaim_instance_interval > 0
        self._rescues = RescueAcceptance(cloud)

    def create_servers(self, ctxt: RequestContext, request: CreateServers) -> CreatedServers:
        created, operations = self._creates.create(ctxt, request)
        if created.repeated:
            LOG.info("Server %s was created by the same request before.", created.uuids[0])
            return created
        for operation in operations:
            ctxt.about(ResourceType.SERVER, operation.server_uuid)
            LOG.info("Server %s accepted: operation %d.", operation.server_uuid, operation.id)
        if len(operations) > 1:
            self._runner.submit_many(operations, self._begin_builds)
        else:
            self._runner.submit(operations[0])
        return created

    def act(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        action: str,
        params: Mapping[str, Any] | None = None,
    ) -> int:
        ctxt.about(ResourceType.SERVER, server_uuid)
        params = params or {}
        if action == "delete" and params.get("deferred") and self._defers:
            action = SOFT_DELETE
        if action == "suspend":
            suspendable.require(self._cloud, ctxt, server_uuid)
        if action == "unshelve":
            operation = begin_unshelve.accept(self._accept, ctxt, server_uuid, params)
        elif action == "delete":
            operation = self._deletes.delete(ctxt, server_uuid)
        else:
            operation = self._accept.act(ctxt, server_uuid, action)
        if operation is None:
            return 0
        return self._begin(operation)

    def resize_server(self, ctxt: RequestContext, server_uuid: str, flavor: FlavorSnapshot) -> int:
        ctxt.about(ResourceType.SERVER, server_uuid)
        return self._begin(self._resizes.resize(ctxt, server_uuid, flavor))

    def migrate_server(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> int:
        ctxt.about(ResourceType.SERVER, server_uuid)
        return self._begin(self._resizes.migrate(ctxt, server_uuid, host))

    def end_resize(self, ctxt: RequestContext, server_uuid: str, action: str) -> int:
        ctxt.about(ResourceType.SERVER, server_uuid)
        return self._begin(self._resizes.end(ctxt, server_uuid, action))

    def rebuild_server(
        self, ctxt: RequestContext, server_uuid: str, request: RebuildServer
    ) -> int:
        ctxt.about(ResourceType.SERVER, server_uuid)
        _check_names(request.changes, CHANGEABLE | REBUILT)
        return self._begin(self._rebuilds.rebuild(ctxt, server_uuid, request))

    def create_server_image(
        self, ctxt: RequestContext, server_uuid: str, image: NewServerImage
    ) -> str | None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        image_id, operation = begin_image.accept(self._cloud, ctxt, server_uuid, image)
        if operation is not None:
            self._begin(operation)
        return image_id

    def steer_migration(
        self, ctxt: RequestContext, server_uuid: str, number: int, *, abort: bool
    ) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        steer_migration.steer(self._cloud, ctxt, server_uuid, number, abort=abort)

    def live_migrate_server(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        host: str | None,
        copy_disks: bool | None,
        *,
        checks_storage: bool = False,
    ) -> int:
        ctxt.about(ResourceType.SERVER, server_uuid)
        operation = begin_live_migration.accept(
            self._cloud, ctxt, server_uuid, host, copy_disks, checks_storage=checks_storage
        )
        return self._begin(operation)

    def evacuate_server(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> int:
        ctxt.about(ResourceType.SERVER, server_uuid)
        return self._begin(begin_evacuation.accept(self._cloud, ctxt, server_uuid, host))

    def rescue_server(
        self, ctxt: RequestContext, server_uuid: str, image_id: str, admin_password: str
    ) -> int:
        ctxt.about(ResourceType.SERVER, server_uuid)
        return self._begin(self._rescues.rescue(ctxt, server_uuid, image_id, admin_password))

    def _begin(self, operation: Operation) -> int:
        LOG.info("Operation %d, %s, begins.", operation.id, operation.action)
        self._runner.submit(operation)
        return operation.id

    def update_server(
        self, ctxt: RequestContext, server_uuid: str, changes: Mapping[str, Any]
    ) -> None:
        _check_names(changes, CHANGEABLE)
        self._change(ctxt, server_uuid, changes)

    def set_server_metadata(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        metadata: Mapping[str, str],
        *,
        replace: bool,
        delete: Sequence[str] = (),
    ) -> dict[str, str]:
        def work(connection: Transaction) -> dict[str, str]:
            server = servers.alive(connection, server_uuid, scope(ctxt))
            locks.check(server.uuid, server.locked_by, is_admin=bool(ctxt.is_admin))
            merged = {} if replace else dict(server.meta)
            merged.update(metadata)
            for key in delete:
                merged.pop(key, None)
            allowed = quotas.limits(connection, server.project_id, self._cloud.quota)
            quotas.check_metadata(allowed, merged, before=len(server.meta))
            servers.change(connection, server, {"meta": merged}, ctxt)
            return merged

        return self._cloud.store.run(work)

    def set_server_tags(self, ctxt: RequestContext, server_uuid: str, tags: Sequence[str]) -> None:
        self._change(ctxt, server_uuid, {"tags": tags})

    def lock_server(self, ctxt: RequestContext, server_uuid: str, reason: str | None) -> None:
        lock.lock(self._cloud, ctxt, server_uuid, reason)

    def reset_server_state(self, ctxt: RequestContext, server_uuid: str, state: str) -> None:
        reset_state.reset_state(self._cloud, ctxt, server_uuid, VmState(state))

    def unlock_server(self, ctxt: RequestContext, server_uuid: str, *, override: bool) -> None:
        lock.unlock(self._cloud, ctxt, server_uuid, override=override)

    def _change(self, ctxt: RequestContext, server_uuid: str, changes: Mapping[str, Any]) -> None:
        def work(connection: Transaction) -> None:
            server = servers.alive(connection, server_uuid, scope(ctxt))
            if "pinned_availability_zone" in changes:
                _check_pin(server, changes["pinned_availability_zone"])
            servers.change(connection, server, changes, ctxt)

        self._cloud.store.run(work)


def _check_names(changes: Mapping[str, Any], allowed: frozenset[str]) -> None:
    """Raise Invalid for columns that aren't among these."""
    unknown = set(changes) - allowed
    if unknown:
        raise Invalid(f"These can't be changed: {', '.join(sorted(unknown))}.")


def _check_pin(server: Server, zone: str | None) -> None:
    """Raise Conflict, in Nova's words, for a zone that the server can't be pinned to."""
    pinned = server.pinned_availability_zone
    if zone is None or zone == pinned:
        return
    if pinned is not None:
        raise Conflict(
            "Cannot change pinned availability zone directly. Unpin first by setting "
            "pinned_availability_zone to null."
        )
    if zone != server.availability_zone:
        raise Conflict(
            "Server can only be pinned to its current availability zone "
            f"'{server.availability_zone}', but '{zone}' was requested."
        )

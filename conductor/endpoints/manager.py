"""The conductor's RPC doors, a few lines each. What they promise is written at the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common import codec, deadlines
from common.context import RequestContext
from common.errors import Conflict, Invalid
from common.log import logger
from conductor.audit.auditor import Auditor
from conductor.audit.heal import Healer
from conductor.audit.proof import RefusedError
from conductor.cloud import Cloud
from conductor.endpoints.aggregates import Notifier
from conductor.engine.runner import Begin, Runner
from conductor.flows.accept import Accept, scope
from conductor.messages import CreatedServers, CreateServers, NewFlavor, NewKeyPair
from conductor.store import (
    aggregates,
    catalog,
    findings,
    placement_outbox,
    quotas,
    registry,
    server_groups,
    servers,
)

LOG = logger(__name__)


class ServerEndpoint:
    """Servers: what the API asks."""

    def __init__(self, cloud: Cloud, runner: Runner, begin_builds: Begin) -> None:
        self._cloud = cloud
        self._runner = runner
        self._begin_builds = begin_builds
        self._accept = Accept(cloud)

    def ping(self, ctxt: RequestContext) -> str:
        """Whether a conductor listens; answers with its name."""
        return self._cloud.name

    def create_servers(self, ctxt: RequestContext, request: dict[str, Any]) -> CreatedServers:
        """See ``ConductorClient.create_servers``."""
        created, operations = self._accept.create(ctxt, codec.load(CreateServers, request))
        for operation in operations:
            ctxt.server_uuid = operation.server_uuid
            LOG.info("Server accepted, as operation %d.", operation.id)
        if len(operations) > 1:
            self._runner.submit_many(operations, self._begin_builds)
        else:
            self._runner.submit(operations[0])
        return created

    def act(
        self, ctxt: RequestContext, server_uuid: str, action: str, params: dict[str, Any]
    ) -> int:
        """See ``ConductorClient.act``."""
        ctxt.server_uuid = server_uuid
        operation = self._accept.act(ctxt, server_uuid, action)
        if operation is None:
            return 0
        LOG.info("Operation %d, %s, begins.", operation.id, action)
        self._runner.submit(operation)
        return operation.id

    def update_server(
        self, ctxt: RequestContext, server_uuid: str, changes: dict[str, Any]
    ) -> None:
        """See ``ConductorClient.update_server``."""
        unknown = set(changes) - {"name", "description", "hostname", "auto_disk_config"}
        if unknown:
            raise Invalid(f"These can't be changed: {', '.join(sorted(unknown))}.")
        self._change(ctxt, server_uuid, changes)

    def set_server_metadata(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        metadata: dict[str, str],
        replace: bool,
        delete: list[str],
    ) -> dict[str, str]:
        """See ``ConductorClient.set_server_metadata``."""

        def work(connection: sa.Connection) -> dict[str, str]:
            server = servers.alive(connection, server_uuid, scope(ctxt))
            merged = {} if replace else dict(server.meta)
            merged.update(metadata)
            for key in delete:
                merged.pop(key, None)
            allowed = quotas.limits(connection, server.project_id, self._cloud.quota)
            quotas.check_metadata(allowed, merged, before=len(server.meta))
            servers.change(connection, server, {"meta": merged})
            return merged

        return self._cloud.store.run(work)

    def set_server_tags(self, ctxt: RequestContext, server_uuid: str, tags: list[str]) -> None:
        """See ``ConductorClient.set_server_tags``."""
        self._change(ctxt, server_uuid, {"tags": tags})

    def _change(self, ctxt: RequestContext, server_uuid: str, changes: Mapping[str, Any]) -> None:
        def work(connection: sa.Connection) -> None:
            server = servers.alive(connection, server_uuid, scope(ctxt))
            servers.change(connection, server, changes)

        self._cloud.store.run(work)


class CatalogEndpoint:
    """Flavors, key pairs and quotas: what the API asks."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_flavor(self, ctxt: RequestContext, flavor: dict[str, Any]) -> str:
        """See ``ConductorClient.create_flavor``."""
        new = codec.load(NewFlavor, flavor)
        return self._cloud.store.run(lambda c: catalog.create_flavor(c, new))

    def update_flavor(self, ctxt: RequestContext, flavorid: str, description: str | None) -> None:
        """See ``ConductorClient.update_flavor``."""
        self._cloud.store.run(lambda c: catalog.update_flavor(c, flavorid, description))

    def delete_flavor(self, ctxt: RequestContext, flavorid: str) -> None:
        """See ``ConductorClient.delete_flavor``."""
        self._cloud.store.run(lambda c: catalog.delete_flavor(c, flavorid))

    def set_flavor_extra_specs(
        self, ctxt: RequestContext, flavorid: str, specs: dict[str, str], delete: list[str]
    ) -> None:
        """See ``ConductorClient.set_flavor_extra_specs``."""
        self._cloud.store.run(lambda c: catalog.set_extra_specs(c, flavorid, specs, delete))

    def set_flavor_access(
        self, ctxt: RequestContext, flavorid: str, project_id: str, allowed: bool
    ) -> None:
        """See ``ConductorClient.set_flavor_access``."""
        self._cloud.store.run(
            lambda c: catalog.set_access(c, flavorid, project_id, allowed=allowed)
        )

    def create_keypair(self, ctxt: RequestContext, keypair: dict[str, Any]) -> None:
        """See ``ConductorClient.create_keypair``."""
        new = codec.load(NewKeyPair, keypair)

        def work(connection: sa.Connection) -> None:
            allowed = quotas.limits(connection, str(ctxt.project_id), self._cloud.quota)
            quotas.check_keypairs(connection, new.user_id, allowed)
            catalog.create_keypair(connection, new)

        self._cloud.store.run(work)

    def delete_keypair(self, ctxt: RequestContext, user_id: str, name: str) -> None:
        """See ``ConductorClient.delete_keypair``."""
        self._cloud.store.run(lambda c: catalog.delete_keypair(c, user_id, name))

    def set_quota(
        self, ctxt: RequestContext, project_id: str, limits: dict[str, int], force: bool
    ) -> None:
        """See ``ConductorClient.set_quota``."""

        def work(connection: sa.Connection) -> None:
            quotas.lock(connection, project_id)
            used = {} if force else quotas.usage(connection, project_id)
            if not force and "server_groups" in limits:
                used["server_groups"] = server_groups.count(connection, project_id)
            for resource, limit in limits.items():
                if 0 <= limit < used.get(resource, 0):
                    raise Invalid(
                        f"Quota limit {limit} for {resource} must be greater than or equal to "
                        f"already used and reserved {used[resource]}."
                    )
            quotas.set_limits(connection, project_id, limits)

        self._cloud.store.run(work)

    def reset_quota(self, ctxt: RequestContext, project_id: str) -> None:
        """See ``ConductorClient.reset_quota``."""
        self._cloud.store.run(lambda c: quotas.forget_limits(c, project_id))


class ServiceEndpoint:
    """Services: what the API asks."""

    def __init__(self, cloud: Cloud, notifier: Notifier) -> None:
        self._cloud = cloud
        self._herald = notifier

    def update_service(
        self,
        ctxt: RequestContext,
        service_uuid: str,
        disabled: bool | None,
        reason: str | None,
        forced_down: bool | None,
    ) -> None:
        """See ``ConductorClient.update_service``."""
        changes: dict[str, Any] = {}
        if disabled is not None:
            changes |= {"disabled": disabled, "disabled_reason": reason if disabled else None}
        if forced_down is not None:
            changes["forced_down"] = forced_down

        def work(connection: sa.Connection) -> None:
            placement_outbox.set_host(connection, service_uuid)
            registry.update_service(connection, service_uuid, changes)

        self._cloud.store.run(work)
        self._herald.spread(ctxt)

    def delete_service(self, ctxt: RequestContext, service_uuid: str) -> None:
        """See ``ConductorClient.delete_service``."""

        def work(connection: sa.Connection) -> None:
            aggregates.forget_service(connection, service_uuid)
            registry.delete_service(connection, service_uuid)

        self._cloud.store.run(work)
        self._herald.spread(ctxt)


class AuditEndpoint:
    """The audit: what administrators ask."""

    def __init__(self, cloud: Cloud, auditor: Auditor, healer: Healer) -> None:
        self._cloud, self._auditor, self._healer = cloud, auditor, healer

    def begin_audit(self, ctxt: RequestContext) -> int:
        """See ``ConductorClient.begin_audit``."""
        return self._auditor.ask(str(ctxt.request_id))

    def heal_finding(
        self, ctxt: RequestContext, finding_id: int, force: bool
    ) -> dict[str, str | int | None]:
        """See ``ConductorClient.heal_finding``."""
        with self._cloud.store.read() as connection:
            found = findings.get(connection, finding_id)
        if found.heal is None:
            raise Conflict("Nothing proves that it is this cloud's: it is never touched.")
        if found.evidence.get("status") not in (None, "stopped") and not force:
            raise Conflict("The VM is not stopped; only force removes it.")
        deadlines.check()
        deadlines.carried_out()
        try:
            answer = self._healer.heal(found)
        except RefusedError as error:
            raise Conflict(error.message) from error
        self._cloud.store.run(
            lambda c: findings.tried(c, finding_id, answer.text, answer.operation_id)
        )
        return {"answer": answer.text, "operation_id": answer.operation_id}

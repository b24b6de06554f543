"""The RPC endpoint of security groups and their rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from common.context import RequestContext
from common.errors import Invalid
from common.resources import quotas as limits
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.rpc.networks.security_groups import (
    NewDefaultRule,
    NewRule,
    NewSecurityGroup,
    SecurityGroupChange,
)
from conductor.store.networks import revisions
from conductor.store.networks.filtering import default_rules, port_security, security_groups
from conductor.store.quotas import quotas
from conductor.store.servers import servers
from conductor.store.transactions import Transaction


class SecurityGroupEndpoint:
    """See ``conductor.rpc.SecurityGroupRpc``."""

    def __init__(self, cloud: Cloud, wake: Callable[[], None]) -> None:
        """``wake``: have what passes servers' interfaces written soon."""
        self._cloud, self._wake = cloud, wake

    def ensure_default_security_group(self, ctxt: RequestContext, project_id: str) -> str:
        return self._cloud.store.run(lambda c: security_groups.default(c, project_id))

    def create_security_groups(
        self, ctxt: RequestContext, groups: list[NewSecurityGroup]
    ) -> list[str]:
        defaults = limits.of_networks(self._cloud.conf)

        def work(connection: Transaction) -> list[str]:
            for project_id in sorted(Counter(one.project_id for one in groups)):
                quotas.lock(connection, project_id)
            return [security_groups.create(connection, one, defaults) for one in groups]

        return self._cloud.store.run(work)

    def update_security_group(
        self, ctxt: RequestContext, group_id: str, asked: SecurityGroupChange
    ) -> None:
        def work(connection: Transaction) -> None:
            row = security_groups.locked(connection, group_id, scope(ctxt))
            revisions.require_group(connection, ctxt, group_id)
            security_groups.change(connection, row, asked)

        self._cloud.store.run(work)

    def delete_security_group(self, ctxt: RequestContext, group_id: str) -> None:
        def work(connection: Transaction) -> None:
            row = security_groups.locked(connection, group_id, scope(ctxt))
            revisions.require_group(connection, ctxt, group_id)
            security_groups.delete(connection, row, also_default=scope(ctxt) is None)

        self._cloud.store.run(work)
        self._wake()

    def create_security_group_rules(
        self, ctxt: RequestContext, project_id: str, rules: list[NewRule]
    ) -> list[str]:
        group_ids = {one.security_group_id for one in rules}
        if len(group_ids) != 1:
            raise Invalid(
                "Only allowed to update rules for one security profile at a time",
                type="SecurityGroupNotSingleGroupRules",
            )
        defaults = limits.of_networks(self._cloud.conf)

        def work(connection: Transaction) -> list[str]:
            quotas.lock(connection, project_id)
            row = security_groups.locked(connection, min(group_ids), scope(ctxt))
            return security_groups.create_rules(connection, row, rules, scope(ctxt), defaults)

        made = self._cloud.store.run(work)
        self._wake()
        return made

    def delete_security_group_rule(self, ctxt: RequestContext, rule_id: str) -> None:
        self._cloud.store.run(lambda c: security_groups.delete_rule(c, rule_id, scope(ctxt)))
        self._wake()

    def create_default_rules(self, ctxt: RequestContext, rules: list[NewDefaultRule]) -> list[str]:
        return self._cloud.store.run(lambda c: default_rules.create(c, rules))

    def delete_default_rule(self, ctxt: RequestContext, rule_id: str) -> None:
        self._cloud.store.run(lambda c: default_rules.delete(c, rule_id))

    def change_server_security_group(
        self, ctxt: RequestContext, server_uuid: str, group_id: str, *, on: bool
    ) -> None:
        def work(connection: Transaction) -> None:
            server = servers.alive(connection, server_uuid, scope(ctxt))
            if on:
                port_security.add_to_server(connection, server.uuid, group_id, server.project_id)
            else:
                port_security.remove_from_server(connection, server.uuid, group_id)

        self._cloud.store.run(work)
        self._wake()

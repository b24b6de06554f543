"""Calls about security groups and their rules."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewDefaultRule, NewRule, NewSecurityGroup, SecurityGroupChange
from conductor.rpc_api import SecurityGroupRpc


class SecurityGroupCalls(Base):
    """See ``conductor.rpc_api.SecurityGroupRpc``. ``type`` in errors' details is Neutron's."""

    def ensure_default_security_group(self, ctxt: RequestContext, project_id: str) -> str:
        """Return the id of a project's default group, which is made if there is none."""
        return self._rpc.call(
            ctxt, SecurityGroupRpc.ensure_default_security_group, project_id=project_id
        )

    def create_security_groups(
        self, ctxt: RequestContext, groups: list[NewSecurityGroup]
    ) -> list[str]:
        """Make all of these groups or none; return their ids. Raises Conflict over a quota."""
        return self._rpc.call(ctxt, SecurityGroupRpc.create_security_groups, groups=groups)

    def update_security_group(
        self, ctxt: RequestContext, group_id: str, asked: SecurityGroupChange
    ) -> None:
        """Change a group. Raises NotFound; Conflict for a new name of a default group."""
        self._rpc.call(
            ctxt, SecurityGroupRpc.update_security_group, group_id=group_id, asked=asked
        )

    def delete_security_group(self, ctxt: RequestContext, group_id: str) -> None:
        """Delete a group. Raises NotFound; Conflict for a default group, or one with ports."""
        self._rpc.call(ctxt, SecurityGroupRpc.delete_security_group, group_id=group_id)

    def create_security_group_rules(
        self, ctxt: RequestContext, project_id: str, rules: list[NewRule]
    ) -> list[str]:
        """Make all of these rules of one group or none; return their ids.

        ``project_id`` is the group's. Raises NotFound (a group), Invalid (several groups),
        Conflict (a rule is there, or twice; the quota).
        """
        return self._rpc.call(
            ctxt,
            SecurityGroupRpc.create_security_group_rules,
            project_id=project_id,
            rules=rules,
        )

    def delete_security_group_rule(self, ctxt: RequestContext, rule_id: str) -> None:
        """Delete a rule. Raises NotFound."""
        self._rpc.call(ctxt, SecurityGroupRpc.delete_security_group_rule, rule_id=rule_id)

    def create_default_rules(self, ctxt: RequestContext, rules: list[NewDefaultRule]) -> list[str]:
        """Have new groups begin with these rules; return their ids. Raises Conflict (one is there,
        or twice)."""
        return self._rpc.call(ctxt, SecurityGroupRpc.create_default_rules, rules=rules)

    def delete_default_rule(self, ctxt: RequestContext, rule_id: str) -> None:
        """Have new groups begin without a rule. Raises NotFound."""
        self._rpc.call(ctxt, SecurityGroupRpc.delete_default_rule, rule_id=rule_id)

    def change_server_security_group(
        self, ctxt: RequestContext, server_uuid: str, group_id: str, *, on: bool
    ) -> None:
        """Put all ports of a server into a group, or take them from it.

        Raises ServerNotFound, NotFound (the group, or no port is in it), Invalid (a port is to
        have no port security).
        """
        self._rpc.call(
            ctxt,
            SecurityGroupRpc.change_server_security_group,
            server_uuid=server_uuid,
            group_id=group_id,
            on=on,
        )

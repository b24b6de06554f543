"""Calls about security groups and their rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext
from common.resources.security_rules import Rule


@dataclass(frozen=True)
class NewSecurityGroup:
    """A security group that a user makes."""

    project_id: str
    name: str
    description: str = ""
    stateful: bool = True


@dataclass(frozen=True)
class SecurityGroupChange:
    """Changes to a security group; None: unchanged."""

    name: str | None = None
    description: str | None = None
    stateful: bool | None = None


@dataclass(frozen=True)
class NewRule:
    """A rule that a group gets."""

    security_group_id: str
    rule: Rule
    description: str = ""


@dataclass(frozen=True)
class NewDefaultRule:
    """A rule that new groups begin with; its remote group may be ``PARENT``, the new one."""

    rule: Rule
    description: str = ""
    used_in_default_sg: bool = False
    """Whether projects' default groups do."""
    used_in_non_default_sg: bool = True
    """Whether all other groups do."""


class SecurityGroupRpc(Protocol):
    """Security groups and their rules."""

    def ensure_default_security_group(self, ctxt: RequestContext, project_id: str) -> str:
        """Return the id of a project's default group, which is made if there is none."""

    def create_security_groups(
        self, ctxt: RequestContext, groups: list[NewSecurityGroup]
    ) -> list[str]:
        """Make all of these groups or none; return their ids. Raises Conflict over a quota."""

    def update_security_group(
        self, ctxt: RequestContext, group_id: str, asked: SecurityGroupChange
    ) -> None:
        """Change a group. Raises NotFound; Conflict for a new name of a default group."""

    def delete_security_group(self, ctxt: RequestContext, group_id: str) -> None:
        """Delete a group. Raises NotFound; Conflict for a default group, or one with ports."""

    def create_security_group_rules(
        self, ctxt: RequestContext, project_id: str, rules: list[NewRule]
    ) -> list[str]:
        """Make all of these rules of one group or none; return their ids.

        ``project_id`` is the group's. Raises NotFound (a group), Invalid (several groups),
        Conflict (a rule exists, or is given twice; the quota).
        """

    def delete_security_group_rule(self, ctxt: RequestContext, rule_id: str) -> None:
        """Delete a rule. Raises NotFound."""

    def create_default_rules(self, ctxt: RequestContext, rules: list[NewDefaultRule]) -> list[str]:
        """Have new groups begin with these rules; return their ids. Raises Conflict (one is there,
        or twice)."""

    def delete_default_rule(self, ctxt: RequestContext, rule_id: str) -> None:
        """Have new groups begin without a rule. Raises NotFound."""

    def change_server_security_group(
        self, ctxt: RequestContext, server_uuid: str, group_id: str, *, on: bool
    ) -> None:
        """Put all ports of a server into a group, or take them from it.

        Raises ServerNotFound, NotFound (the group, or no port is in it), Invalid (a port is to
        have no port security).
        """

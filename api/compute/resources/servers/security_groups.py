"""Security groups of a server: `os-security-groups`, and the actions that change them.

They are those of its ports; facts from nova's security_groups.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import security_groups as schemas
from api.compute.views import security_groups as views
from common.errors import Conflict, NotFound
from db.reads.networks import security_groups
from db.reads.networks.security_groups import SecurityGroup


class ServerSecurityGroups:
    """The groups that a server's ports are in."""

    @operation("os-security-groups:list", query=schemas.LIST, on=the_server)
    def index(self, call: Call) -> Any:
        """List a server's security groups with what they let in."""
        found = call.read(security_groups.of_server, call.server.uuid)
        return {"security_groups": views.groups(found, call.read)}


class SecurityGroupActions:
    """The actions on a server's security groups."""

    @operation("os-security-groups:add", body=schemas.ADD, status=202, on=the_server)
    def add_security_group(self, call: Call) -> None:
        """Put all of a server's ports into a security group."""
        self._change(call, "addSecurityGroup", on=True)

    @operation("os-security-groups:remove", body=schemas.REMOVE, status=202, on=the_server)
    def remove_security_group(self, call: Call) -> None:
        """Take all of a server's ports from a security group."""
        self._change(call, "removeSecurityGroup", on=False)

    def _change(self, call: Call, action: str, *, on: bool) -> None:
        group = group_of(call, call.server.project_id, call.body[action]["name"])
        call.conductor.change_server_security_group(call.ctxt, call.server.uuid, group.id, on=on)


def group_of(call: Call, project_id: str, name: str) -> SecurityGroup:
    """Return a project's security group by its name or ID. Raises NotFound, Conflict."""
    return the_only(call.read(security_groups.named, project_id, name), project_id, name)


def the_only(found: Sequence[SecurityGroup], project_id: str, name: str) -> SecurityGroup:
    """Return the only group found. Raises NotFound, Conflict."""
    if len(found) > 1:
        raise Conflict(
            f"Multiple security_group matches found for name '{name}', use an ID to be more "
            "specific."
        )
    if not found:
        raise NotFound(f"Security group {name} is not found for project {project_id}")
    return found[0]

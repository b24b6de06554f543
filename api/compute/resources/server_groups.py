"""`/os-server-groups`: affinity and anti-affinity of servers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import server_groups as schemas
from common import ids
from common.errors import Invalid, NotFound
from common.resources.server_groups import Policy
from conductor.rpc.servers.server_groups import NewServerGroup
from db.reads.servers import server_groups
from db.reads.servers.server_groups import ServerGroup
from web.guard import Params


def _own(call: Call, _params: Params) -> Mapping[str, Any]:
    """Return the policy's target where the path names no group."""
    return {"project_id": call.ctxt.project_id}


def _the_group(call: Call, params: Params) -> Mapping[str, Any]:
    """The policy's target: the group's owner. Raises NotFound, also for another project's."""
    return {"project_id": _find(call, params["group_id"]).project_id}


class ServerGroups:
    """The server groups of a project."""

    @operation("os-server-groups:index", query=schemas.LIST, on=_own)
    def index(self, call: Call) -> Any:
        """List the project's server groups; all projects' for administrators on request."""
        project: str | None = call.project
        if "all_projects" in call.query and call.is_admin:
            call.check("os-server-groups:index:all_projects", _own(call, {}))
            project = None
        found = call.read(
            server_groups.list_groups,
            project,
            limit=min(call.query.number("limit") or call.max_limit, call.max_limit),
            offset=min(call.query.number("offset") or 0, 2**31 - 1),
        )
        return {"server_groups": [_view(call, group) for group in found]}

    @operation("os-server-groups:create", body=schemas.CREATE, on=_own)
    def create(self, call: Call) -> Any:
        """Create a server group; servers join when they are created."""
        asked = call.body["server_group"]
        policy = asked["policy"] if call.version >= 64 else asked["policies"][0]
        rules = {name: int(value) for name, value in asked.get("rules", {}).items()}
        if rules and policy != Policy.ANTI_AFFINITY:
            raise Invalid("Only anti-affinity policy supports rules.")
        new = NewServerGroup(call.project, call.ctxt.user_id or "", asked["name"], policy, rules)
        made = call.conductor.create_server_group(call.ctxt, new)
        return {"server_group": _view(call, _find(call, made))}

    @operation("os-server-groups:show", on=_the_group)
    def show(self, call: Call, group_id: str) -> Any:
        """Show a server group with its members."""
        return {"server_group": _view(call, _find(call, group_id))}

    @operation("os-server-groups:delete", status=204, on=_the_group)
    def delete(self, call: Call, group_id: str) -> None:
        """Delete a server group; its servers remain."""
        call.conductor.delete_server_group(call.ctxt, _find(call, group_id).uuid)


def _find(call: Call, group_id: str) -> ServerGroup:
    found: ServerGroup | None = None
    if ids.is_uuid(group_id):
        found = call.read(server_groups.find, str(uuid.UUID(group_id)), call.reach)
    if found is None:
        raise NotFound(f"Instance group {group_id} could not be found.")
    return found


def _view(call: Call, group: ServerGroup) -> dict[str, Any]:
    view: dict[str, Any] = {"id": group.uuid, "name": group.name, "members": list(group.members)}
    if call.version >= 13:
        view |= {"project_id": group.project_id, "user_id": group.user_id}
    if call.version >= 64:
        return view | {"policy": group.policy, "rules": dict(group.rules)}
    return view | {"policies": [group.policy], "metadata": {}}

"""`/nodes`: members of groups, and servers that are in none."""

from __future__ import annotations

from typing import Any

from oslo_utils import strutils

from api.clustering import details, recovery, schemas, views
from api.clustering.call import Call, changes, operation, the
from api.clustering.resources.clusters import referred
from common.errors import MicronovaError, Unimplemented
from common.resources.groups import GroupAction, Repair
from db.reads.groups import actions
from db.reads.groups import groups as reads
from db.reads.groups.groups import GROUPS, MEMBERS, PROFILES, Member
from db.reads.groups.shown import NODE_STATUSES
from db.reads.ledger import waiting

_THE = the(MEMBERS)


class Nodes:
    """The nodes of a project."""

    @operation("nodes:index", asks=("clusters:global",))
    def index(self, call: Call) -> Any:
        """List nodes."""
        wanted: dict[str, Any] = call.filters("name", "cluster_id", status=NODE_STATUSES)
        # As in Senlin: the last one counts, and blank is not given.
        if cluster := wanted.pop("cluster_id", ("",))[-1]:
            wanted["group_id"] = referred(call, GROUPS, cluster).id
        found = call.listed(MEMBERS, wanted)
        names = call.read(reads.names, PROFILES, [one.profile_id for one in found])
        waits = call.read(waiting.of_servers, views.placed(found))
        return {
            "nodes": [views.node(call, one, names.get(one.profile_id, ""), waits) for one in found]
        }

    @operation("nodes:create", body=schemas.NODE, status=202)
    def create(self, call: Call) -> Any:
        """Make a node with its server, in a cluster or in none, asynchronously."""
        asked = call.body["node"]
        profile = referred(call, PROFILES, asked["profile_id"])
        cluster = asked.get("cluster_id")
        group = None if not cluster else referred(call, GROUPS, cluster)
        which = (asked["name"].strip(), profile.id, asked.get("metadata") or {})
        node_id = call.conductor.create_member(call.ctxt, *which)
        if asked.get("role"):
            call.conductor.change_member(call.ctxt, node_id, {"role": asked["role"]})
        number = 0 if group is None else _joined(call, group.id, node_id)
        node = call.find(MEMBERS, node_id)
        return call.accepted({"node": _shown(call, node)}, number or _last_about(call, node))

    @operation("nodes:get", on=_THE)
    def show(self, call: Call, node: Member) -> Any:
        """Show a node, and its server where that is asked for."""
        asked = call.query.boolean("show_details")
        return {"node": _shown(call, node, details.of(call, node) if asked else None)}

    @operation("nodes:update", body=schemas.NODE_UPDATE, status=202, on=_THE)
    def update(self, call: Call, node: Member) -> Any:
        """Change the name, the role or the metadata of a node."""
        asked = call.body["node"]
        if asked.get("profile_id") is not None:
            raise Unimplemented("A node has its cluster's profile: update the cluster.")
        if strutils.bool_from_string(asked.get("tainted")):
            raise Unimplemented("Nodes are not tainted; delete the node that is to leave.")
        changed = changes(
            name=asked.get("name"), role=asked.get("role"), meta=asked.get("metadata")
        )
        call.conductor.change_member(call.ctxt, node.id, changed)
        shown = {"node": _shown(call, call.find(MEMBERS, node.id))}
        # It is done already: clients that wait for the action look at the last one there was.
        return call.accepted(shown, _last_about(call, node))

    @operation("nodes:delete", status=202, on=_THE)
    def delete(self, call: Call, node: Member) -> Any:
        """Delete a node with its server; its cluster is smaller then."""
        return call.accepted(None, call.conductor.delete_member(call.ctxt, node.id))

    @operation("nodes:action", body=schemas.CHECK, status=202, on=_THE)
    def check(self, call: Call, node: Member) -> Any:
        """Have the cluster of a node looked at."""
        if node.group_id is None:
            # Its status is always that of now.
            number = _last_about(call, node)
        else:
            number = call.conductor.tend_group(call.ctxt, node.group_id, GroupAction.CHECK)
        return call.accepted({"action": str(number)}, number)

    @operation("nodes:action", body=schemas.RECOVER_NODE, status=202, on=_THE)
    def recover(self, call: Call, node: Member) -> Any:
        """Have the server of a node replaced, or repaired in another way that is named."""
        asked = recovery.asked(call.body["recover"])
        repair = asked.repair or Repair.RECREATE
        if repair == Repair.RECREATE and not asked.check:
            number = call.conductor.recover_member(call.ctxt, node.id)
        else:
            which = (call.ctxt, node.id, repair.value)
            number = call.conductor.repair_member(*which, soft=asked.soft, check=asked.check)
        number = number or _last_about(call, node)
        return call.accepted({"action": str(number)}, number)

    @operation("nodes:action", on=_THE)
    def operate(self, call: Call, node: Member) -> Any:
        """Perform an operation on a node: not supported."""
        raise Unimplemented("Operations on nodes are not supported; act on their servers.")

    @operation("nodes:create")
    def adopt(self, call: Call) -> Any:
        """Make a node of an existing server: not supported."""
        raise Unimplemented("Servers are not adopted as nodes.")


ACTIONS = {"check": "check", "recover": "recover"}


def _last_about(call: Call, node: Member) -> int:
    """Return the last operation about a node's server, or its cluster: of requests that begin no
    other one."""
    number = call.read(actions.last_of_server, str(node.server_uuid))
    if number is None and node.group_id is not None:
        number = next((one.id for one in call.read(actions.last, node.group_id, 1)), None)
    return number or 0


def _joined(call: Call, group_id: str, node_id: str) -> int:
    """Have a cluster take a new node, which is deleted again if that is refused."""
    try:
        return call.conductor.add_members(call.ctxt, group_id, [node_id])
    except MicronovaError:
        call.conductor.delete_member(call.ctxt, node_id)
        raise


def _shown(call: Call, one: Member, its: Any = None) -> dict[str, Any]:
    names = call.read(reads.names, PROFILES, [one.profile_id])
    waits = call.read(waiting.of_servers, views.placed([one]))
    return views.node(call, one, names.get(one.profile_id, ""), waits, its)

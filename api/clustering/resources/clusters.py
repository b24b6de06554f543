"""`/clusters`: groups, and the actions on them."""

from __future__ import annotations

import operator
from typing import Any

from oslo_utils import strutils

from api.clustering import explanation, recovery, schemas, views
from api.clustering.call import Call, operation, stripped, the
from api.clustering.errors import NotAtVersion
from common.errors import Invalid, NotFound, Unimplemented
from common.resources.groups import UNLIMITED, GroupAction
from conductor.rpc.groups import GroupChanges, NewGroup, Resize
from db.reads.groups import groups as reads
from db.reads.groups.groups import GROUPS, MEMBERS, POLICIES, PROFILES, Binding, Group
from db.reads.groups.shown import CLUSTER_STATUSES
from web.guard import Reply

_THE = the(GROUPS)
#: what a resize changes
_SIZES = ("adjustment_type", "number", "min_size", "max_size")
_TIMEOUT_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 3600, 60, 86_400


class Clusters:
    """The groups of a project."""

    @operation("clusters:index", asks=("clusters:global",))
    def index(self, call: Call) -> Any:
        """List clusters."""
        found = call.listed(GROUPS, call.filters("name", status=CLUSTER_STATUSES))
        profiles = call.read(reads.names, PROFILES, [one.profile_id for one in found])
        ids = [one.id for one in found]
        nodes = call.read(reads.ids_of_members, ids)
        policies = call.read(reads.ids_of_policies, ids)
        return {
            "clusters": [
                views.cluster(
                    one,
                    profiles.get(one.profile_id, ""),
                    nodes.get(one.id, ()),
                    policies.get(one.id, ()),
                )
                for one in found
            ]
        }

    @operation("clusters:create", body=schemas.CLUSTER, status=202)
    def create(self, call: Call) -> Any:
        """Make a cluster with its nodes, asynchronously."""
        asked = call.body["cluster"]
        profile = referred(call, PROFILES, asked["profile_id"])
        least = _number(asked, "min_size") or 0
        desired = _number(asked, "desired_capacity")
        most = _number(asked, "max_size")
        new = NewGroup(
            asked["name"].strip(),
            profile.id,
            least if desired is None else desired,
            least,
            UNLIMITED if most is None else most,
            _timeout(asked) or _TIMEOUT_SECONDS,
            asked.get("metadata") or {},
            asked.get("config") or {},
        )
        group_id, number = call.conductor.create_group(call.ctxt, new)
        return call.accepted({"cluster": _shown(call, call.find(GROUPS, group_id))}, number)

    @operation("clusters:get", on=_THE)
    def show(self, call: Call, cluster: Group) -> Any:
        """Show a cluster."""
        return {"cluster": _shown(call, cluster)}

    @operation("clusters:get", on=_THE)
    def explain(self, call: Call, cluster: Group) -> Any:
        """Explain why a cluster is as it is, and what would change it."""
        return {
            "explanation": call.read(explanation.of, cluster, is_admin=bool(call.ctxt.is_admin))
        }

    @operation("clusters:update", body=schemas.CLUSTER_UPDATE, status=202, on=_THE)
    def update(self, call: Call, cluster: Group) -> Any:
        """Change a cluster; with another profile its nodes are replaced, asynchronously."""
        asked = call.body["cluster"]
        profile = asked.get("profile_id")
        changes = GroupChanges(
            stripped(asked.get("name")),
            None if profile is None else referred(call, PROFILES, profile).id,
            _truth(asked.get("profile_only")),
            _timeout(asked),
            asked.get("metadata"),
            asked.get("config"),
        )
        number = call.conductor.change_group(call.ctxt, cluster.id, changes)
        return call.accepted({"cluster": _shown(call, call.find(GROUPS, cluster.id))}, number)

    @operation("clusters:delete", status=202, on=_THE)
    def delete(self, call: Call, cluster: Group) -> Any:
        """Delete a cluster with its servers, asynchronously."""
        # `force` changes nothing here, but a value that is none is refused.
        call.query.boolean("force")
        number = call.conductor.delete_group(call.ctxt, cluster.id, keep=False)
        return call.accepted(None, number)

    # --- actions

    @operation("clusters:action", body=schemas.RESIZE, status=202, on=_THE)
    def resize(self, call: Call, cluster: Group) -> Any:
        """Change the size, or the limits of it."""
        asked = call.body["resize"]
        kind, number = asked.get("adjustment_type"), asked.get("number")
        if all(asked.get(name) is None for name in _SIZES):
            raise Invalid("Neither a size nor a limit of it is named.")
        if (kind is None) != (number is None):
            raise Invalid("adjustment_type and number must be given together.")
        if kind in ("EXACT_CAPACITY", "CHANGE_IN_CAPACITY") and number != int(number):
            raise Invalid(f"The number for {kind} must be an integer.")
        if kind == "EXACT_CAPACITY" and number < 0:
            raise Invalid("The number for EXACT_CAPACITY must not be negative.")
        strict = asked.get("strict")
        resize = Resize(
            GroupAction.RESIZE,
            kind,
            number or 0,
            abs(_number(asked, "min_step") or 1),
            True if strict is None else _truth(strict),
            _number(asked, "min_size"),
            _number(asked, "max_size"),
        )
        return self._begun(call, call.conductor.resize_group(call.ctxt, cluster.id, resize))

    @operation("clusters:action", body=schemas.SCALE_OUT, status=202, on=_THE)
    def scale_out(self, call: Call, cluster: Group) -> Any:
        """Add nodes."""
        return self._scaled(call, cluster, "scale_out", GroupAction.SCALE_OUT, 1)

    @operation("clusters:action", body=schemas.SCALE_IN, status=202, on=_THE)
    def scale_in(self, call: Call, cluster: Group) -> Any:
        """Remove nodes, as the deletion policy says."""
        return self._scaled(call, cluster, "scale_in", GroupAction.SCALE_IN, -1)

    def _scaled(self, call: Call, cluster: Group, verb: str, action: str, sign: int) -> Any:
        count = _number(call.body[verb] or {}, "count")
        if count == 0:
            raise Invalid(f"Count for {verb.replace('_', '-')} request cannot be 0.")
        resize = Resize(action, "CHANGE_IN_CAPACITY", sign * (count or 1))
        return self._begun(call, call.conductor.resize_group(call.ctxt, cluster.id, resize))

    @operation("clusters:action", body=schemas.CHECK, status=202, on=_THE)
    def check(self, call: Call, cluster: Group) -> Any:
        """Have all nodes looked at."""
        return self._tended(call, cluster, GroupAction.CHECK)

    @operation("clusters:action", body=schemas.RECOVER, status=202, on=_THE)
    def recover(self, call: Call, cluster: Group) -> Any:
        """Have nodes repaired that are not well, and creations go on that had stopped.

        Nodes are always looked at first, and counted: `check` and `check_capacity` change nothing.
        """
        asked = recovery.asked(call.body["recover"])
        if asked.soft:
            raise Unimplemented(
                "Nodes of a cluster are restarted hard; a node alone can be restarted soft."
            )
        if asked.repair is None:
            return self._tended(call, cluster, GroupAction.RECOVER)
        repair_group = call.conductor.repair_group
        return self._begun(call, repair_group(call.ctxt, cluster.id, asked.repair.value))

    def _tended(self, call: Call, cluster: Group, action: GroupAction) -> Any:
        return self._begun(call, call.conductor.tend_group(call.ctxt, cluster.id, action))

    @operation("clusters:action", body=schemas.ADD_NODES, status=202, on=_THE)
    def add_nodes(self, call: Call, cluster: Group) -> Any:
        """Take nodes that are in no cluster."""
        nodes = [referred(call, MEMBERS, one).id for one in call.body["add_nodes"]["nodes"]]
        return self._begun(call, call.conductor.add_members(call.ctxt, cluster.id, nodes))

    @operation("clusters:action", body=schemas.DEL_NODES, status=202, on=_THE)
    def del_nodes(self, call: Call, cluster: Group) -> Any:
        """Have nodes leave the cluster, with or without their servers."""
        asked = call.body["del_nodes"]
        nodes = [referred(call, MEMBERS, one).id for one in asked["nodes"]]
        destroy = _truth(asked.get("destroy_after_deletion"))
        take_out = call.conductor.take_members_out
        return self._begun(call, take_out(call.ctxt, cluster.id, nodes, destroy=destroy))

    @operation(
        "clusters:action",
        body=schemas.REPLACE_NODES,
        since="1.3",
        absent=NotAtVersion,
        status=202,
        on=_THE,
    )
    def replace_nodes(self, call: Call, cluster: Group) -> Any:
        """Have nodes that are in no cluster take the places of others."""
        pairs = {
            referred(call, MEMBERS, old).id: referred(call, MEMBERS, new).id
            for old, new in call.body["replace_nodes"]["nodes"].items()
        }
        return self._begun(call, call.conductor.replace_members(call.ctxt, cluster.id, pairs))

    @operation("clusters:action", body=schemas.POLICY_ATTACH, status=202, on=_THE)
    def policy_attach(self, call: Call, cluster: Group) -> Any:
        """Attach a policy."""
        return self._bound(call, cluster, "policy_attach", new=True)

    @operation("clusters:action", body=schemas.POLICY_UPDATE, status=202, on=_THE)
    def policy_update(self, call: Call, cluster: Group) -> Any:
        """Enable or disable a policy that is attached."""
        return self._bound(call, cluster, "policy_update", new=False)

    def _bound(self, call: Call, cluster: Group, verb: str, *, new: bool) -> Any:
        asked = call.body[verb]
        policy, enabled = referred(call, POLICIES, asked["policy_id"]), asked.get("enabled")
        on = True if enabled is None else _truth(enabled)
        if enabled is None and not new:
            bound = call.read(reads.bindings, cluster.id)
            on = all(one.enabled for one in bound if one.policy_id == policy.id)
        bind = call.conductor.bind_policy
        return self._begun(call, bind(call.ctxt, cluster.id, policy.id, enabled=on, new=new))

    @operation("clusters:action", body=schemas.POLICY_DETACH, status=202, on=_THE)
    def policy_detach(self, call: Call, cluster: Group) -> Any:
        """Detach a policy."""
        policy = referred(call, POLICIES, call.body["policy_detach"]["policy_id"])
        number = call.conductor.unbind_policy(call.ctxt, cluster.id, policy.id)
        return self._begun(call, number)

    @operation("clusters:action", body=schemas.PAUSE, status=202, on=_THE)
    def pause(self, call: Call, cluster: Group) -> Any:
        """Pause a rolling update."""
        return self._begun(call, call.conductor.steer_group(call.ctxt, cluster.id, "pause"))

    @operation("clusters:action", body=schemas.GO_ON, status=202, on=_THE)
    def go_on(self, call: Call, cluster: Group) -> Any:
        """Have a rolling update go on."""
        return self._begun(call, call.conductor.steer_group(call.ctxt, cluster.id, "resume"))

    @operation("clusters:action", body=schemas.ROLL_BACK, status=202, on=_THE)
    def roll_back(self, call: Call, cluster: Group) -> Any:
        """Have the former profile again."""
        return self._begun(call, call.conductor.steer_group(call.ctxt, cluster.id, "roll_back"))

    @operation("clusters:delete", body=schemas.DELETE_OWN, status=202, on=_THE)
    def delete_keeping(self, call: Call, cluster: Group) -> Any:
        """Delete a cluster; with `keep` its servers remain."""
        keep = _truth(call.body["micronova:delete"].get("keep"))
        return self._begun(call, call.conductor.delete_group(call.ctxt, cluster.id, keep=keep))

    @staticmethod
    def _begun(call: Call, number: int) -> Reply:
        return call.accepted({"action": str(number)}, number)

    # --- what it has

    @operation("cluster_policies:index", on=_THE)
    def policies(self, call: Call, cluster: Group) -> Any:
        """List the policies of a cluster."""
        filters = call.filters("policy_name", "policy_type", "enabled", paging=("sort",))
        # As in Senlin: the last value counts, and blank is not given.
        wanted: dict[str, Any] = {name: last for name, (*_, last) in filters.items() if last}
        if "enabled" in wanted:
            wanted["enabled"] = call.query.boolean("enabled")
        shown = [views.binding(one, cluster) for one in call.read(reads.bindings, cluster.id)]
        for name, descending in call.order(("enabled",)):
            shown.sort(key=operator.itemgetter(name), reverse=descending)
        return {
            "cluster_policies": [
                one for one in shown if all(one[name] == value for name, value in wanted.items())
            ]
        }

    @operation("cluster_policies:get", on=_THE)
    def policy(self, call: Call, cluster: Group, policy: str) -> Any:
        """Show a policy of a cluster."""
        found: list[Binding] = call.read(reads.bindings, cluster.id)
        for one in found:
            if policy in (one.policy_id, one.policy_name, one.policy_id[: max(4, len(policy))]):
                return {"cluster_policy": views.binding(one, cluster)}
        raise NotFound(
            f"The policy '{policy}' is not found attached to the specified cluster "
            f"'{cluster.name}'."
        )

    @operation("clusters:get", on=_THE)
    def attributes(self, call: Call, cluster: Group, path: str) -> Any:
        """Collect attributes of nodes: not supported."""
        raise Unimplemented(
            "Attributes of nodes are not collected; list nodes with their details."
        )

    @operation("clusters:action", on=_THE)
    def operate(self, call: Call, cluster: Group) -> Any:
        """Perform an operation on all nodes: not supported."""
        raise Unimplemented("Operations on all nodes of a cluster are not supported.")


ACTIONS = {
    **{
        name: name
        for name in (
            *("resize", "scale_out", "scale_in", "check", "recover", "add_nodes", "del_nodes"),
            *("replace_nodes", "policy_attach", "policy_update", "policy_detach"),
        )
    },
    "micronova:pause": "pause",
    "micronova:resume": "go_on",
    "micronova:roll_back": "roll_back",
    "micronova:delete": "delete_keeping",
}


def _shown(call: Call, group: Group) -> dict[str, Any]:
    names = call.read(reads.names, PROFILES, [group.profile_id])
    nodes = call.read(reads.ids_of_members, [group.id])
    policies = call.read(reads.ids_of_policies, [group.id])
    name = names.get(group.profile_id, "")
    return views.cluster(group, name, nodes.get(group.id, ()), policies.get(group.id, ()))


def referred(call: Call, kind: Any, named: str) -> Any:
    """Return what a body names. Raises Invalid where there is none."""
    try:
        return call.find(kind, named)
    except NotFound as error:
        raise Invalid(f"The specified {kind.noun} '{named}' could not be found.") from error


def _number(asked: Any, name: str) -> int | None:
    """Return a number that may have come as text; None: it was not given."""
    value = asked.get(name)
    return None if value is None else int(value)


def _timeout(asked: Any) -> int | None:
    seconds = _number(asked, "timeout")
    if seconds is not None and not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise Invalid(f"timeout must be from {_LEAST_SECONDS} to {_MOST_SECONDS} seconds.")
    return seconds


def _truth(value: Any) -> bool:
    return bool(strutils.bool_from_string(value))

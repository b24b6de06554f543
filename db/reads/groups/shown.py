"""What clients of the clustering API see of rows, as columns: lists are filtered and sorted by it.

Names are Senlin's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common.resources.groups import GroupAction, MemberState, Status
from common.resources.states import OPEN_STATES, OperationState, ResourceType, VmState
from db.schema import operations, scaling_groups, scaling_members, servers

_O, _G, _M, _S = operations.c, scaling_groups.c, scaling_members.c, servers.c

#: operation about a group → its name
CLUSTER_ACTIONS: Mapping[str, str] = {
    GroupAction.CREATE: "CLUSTER_CREATE",
    GroupAction.UPDATE: "CLUSTER_UPDATE",
    GroupAction.RESIZE: "CLUSTER_RESIZE",
    GroupAction.SCALE_OUT: "CLUSTER_SCALE_OUT",
    GroupAction.SCALE_IN: "CLUSTER_SCALE_IN",
    GroupAction.CHECK: "CLUSTER_CHECK",
    GroupAction.RECOVER: "CLUSTER_RECOVER",
    GroupAction.ADD_MEMBERS: "CLUSTER_ADD_NODES",
    GroupAction.TAKE_OUT: "CLUSTER_DEL_NODES",
    GroupAction.REPLACE_MEMBERS: "CLUSTER_REPLACE_NODES",
    GroupAction.POLICY: "CLUSTER_UPDATE_POLICY",
    GroupAction.STEER: "CLUSTER_OPERATION",
    GroupAction.KEEP: "CLUSTER_RECOVER",
    GroupAction.DELETE: "CLUSTER_DELETE",
}
#: operation about a member's server → its name; others of servers are no actions of nodes
NODE_ACTIONS: Mapping[str, str] = {"create": "NODE_CREATE", "delete": "NODE_DELETE"}
ACTIONS: Mapping[str, str] = {**CLUSTER_ACTIONS, **NODE_ACTIONS}

RUNNING, SUCCEEDED, FAILED = "RUNNING", "SUCCEEDED", "FAILED"
# What filters may name, be there such a record or not.
ACTION_STATUSES = frozenset(
    {
        *(RUNNING, SUCCEEDED, FAILED, "INIT", "WAITING", "READY", "CANCELLED", "SUSPENDED"),
        "WAITING_LIFECYCLE_COMPLETION",
    }
)
CLUSTER_STATUSES = frozenset({*Status, "INIT", "CRITICAL", "OPERATING"})
NODE_STATUSES = frozenset(
    {
        *("INIT", "ACTIVE", "ERROR", "WARNING", "CREATING", "UPDATING", "DELETING", "RECOVERING"),
        "OPERATING",
    }
)
EVENT_LEVELS = frozenset({"CRITICAL", "ERROR", "WARN", "INFO", "DEBUG"})

_NODE_STATUS: Mapping[str, str] = {
    VmState.BUILDING: "CREATING",
    VmState.ACTIVE: "ACTIVE",
    VmState.ERROR: "ERROR",
}


def node_status() -> sa.ColumnElement[str]:
    """Return the status of a member, by its row and its server's."""
    return sa.case(
        (_M.state == MemberState.LEAVING, "DELETING"),
        (_M.state == MemberState.REPLACED, "RECOVERING"),
        (sa.or_(_S.vm_state.is_(None), _S.deleted_at.is_not(None)), "CREATING"),
        *((_S.vm_state == state, shown) for state, shown in _NODE_STATUS.items()),
        else_="WARNING",
    )


def type_of(spec: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    """Return the type of a spec with its version."""
    found: sa.ColumnElement[str] = spec["type"].as_string() + "-" + spec["version"].as_string()
    return found


# --- operations; those about servers are joined to them, and to the members that have them

_IS_GROUP = _O.resource_type == ResourceType.GROUP
_IS_SERVER = _O.resource_type == ResourceType.SERVER
_CLUSTER = sa.case((_IS_GROUP, _O.resource_id), else_=sa.func.coalesce(_M.group_id, _S.member_of))

ACTION_ROWS = (
    operations.outerjoin(servers, sa.and_(_IS_SERVER, _S.uuid == _O.resource_id))
    .outerjoin(scaling_members, sa.and_(_IS_SERVER, _M.server_uuid == _O.resource_id))
    .outerjoin(scaling_groups, sa.and_(_IS_GROUP, _G.id == _O.resource_id))
)
#: those that lists have
LISTED = sa.or_(
    _IS_GROUP,
    sa.and_(
        _IS_SERVER,
        _O.action.in_(NODE_ACTIONS),
        sa.or_(_S.member_of.is_not(None), _M.id.is_not(None)),
    ),
)
#: a server of a member that has another one now, or none, has its own ID
TARGET: sa.ColumnElement[str] = sa.func.coalesce(_M.id, _O.resource_id)
CLUSTER: sa.ColumnElement[str] = sa.func.coalesce(_CLUSTER, "")
TARGET_NAME: sa.ColumnElement[str] = sa.func.coalesce(_G.name, _M.name, _S.name, "")
TARGET_TYPE: sa.ColumnElement[str] = sa.case((_IS_GROUP, "CLUSTER"), else_="NODE")
ACTION_NAME: sa.ColumnElement[str] = sa.case(
    *((_O.action == action, name) for action, name in ACTIONS.items()),
    else_=sa.func.upper(_O.action, type_=sa.String),
)
NAME: sa.ColumnElement[str] = (
    sa.func.lower(ACTION_NAME, type_=sa.String)
    + "_"
    + sa.func.substr(TARGET, 1, 8, type_=sa.String)
)
STATUS: sa.ColumnElement[str] = sa.case(
    (_O.state.in_(OPEN_STATES), RUNNING),
    (_O.state == OperationState.DONE, SUCCEEDED),
    else_=FAILED,
)
LEVEL: sa.ColumnElement[str] = sa.case((_O.state == OperationState.FAILED, "ERROR"), else_="INFO")

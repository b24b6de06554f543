"""The filters of a server list: query parameters as `db.reads.servers.servers.Filters`.

Facts from nova/api/openstack/compute/servers.py and nova/db/main/api.py.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.schemas.servers import (
    IGNORED_SORT_KEYS,
    NOT_FILTERS,
    OURS_SINCE,
    SEARCH,
)
from api.query import Query
from common import ids
from common.errors import Forbidden, Invalid
from common.resources import states
from common.resources.states import TaskState, VmState
from db.reads.servers.servers import LOCKED, Filters

#: filter for all users → since
_FOR_USERS: Mapping[str, int] = {
    **dict.fromkeys(
        ("reservation_id", "name", "status", "image", "flavor", "ip", "changes-since"), 1
    ),
    "all_tenants": 1,
    "ip6": 5,
    **dict.fromkeys(("tags", "tags-any", "not-tags", "not-tags-any"), 26),
    "changes-before": 66,
    "locked": 73,
    **dict.fromkeys(
        (
            *("availability_zone", "config_drive", "key_name", "created_at", "launched_at"),
            *("terminated_at", "power_state", "task_state", "vm_state", "progress", "user_id"),
        ),
        83,
    ),
    "hostname": 90,
    SEARCH: OURS_SINCE,
}

#: parameter → column that must be equal
_EXACT: Mapping[str, str] = {
    "user_id": "user_id",
    "host": "host",
    "image": "image_id",
    "image_ref": "image_id",
    "uuid": "uuid",
    "vm_state": "vm_state",
    "task_state": "task_state",
}

#: parameter → column that its regular expression must match
_PATTERNS: Mapping[str, str] = {
    "name": "name",
    "display_name": "name",
    "display_description": "description",
    "hostname": "hostname",
    "key_name": "key_name",
    "availability_zone": "availability_zone",
    "node": "host",
    "reservation_id": "reservation_id",
    "power_state": "power_state",
    "launch_index": "launch_index",
    "created_at": "created_at",
    "launched_at": "launched_at",
    "terminated_at": "terminated_at",
    "locked_by": "locked_by",
    "access_ip_v4": "access_ip_v4",
    "access_ip_v6": "access_ip_v6",
}

#: filters by attributes that no server here has: they match nothing
_NEVER = ("kernel_id", "ramdisk_id")

#: Nova's sort key → column; None: the same for every server
_SORT: Mapping[str, str | None] = {
    **dict.fromkeys(("kernel_id", "progress", "ramdisk_id", "root_device_name"), None),
    "config_drive": None,
    "display_description": "description",
    "display_name": "name",
    "image_ref": "image_id",
    "instance_type_id": "vcpus",
    "node": "host",
}

#: statuses of Nova that no server here ever has
_OTHER_STATUSES = frozenset(
    {
        *("MIGRATING", "PASSWORD", "REBUILD", "RESCUE", "RESIZE", "REVERT_RESIZE"),
        *("SHELVED", "SHELVED_OFFLOADED", "SOFT_DELETED", "VERIFY_RESIZE"),
    }
)

_TAGS: Mapping[str, str] = {
    "tags": "tags",
    "tags-any": "tags_any",
    "not-tags": "not_tags",
    "not-tags-any": "not_tags_any",
}


def filters_of(call: Call, *, all_tenants_rule: str) -> Filters:
    """Return the filters of a list request, restricted to what the user may see.

    Raises Invalid, and Forbidden for all projects' or deleted servers.
    """
    query = _permitted(call)
    for name in query:
        if name in NOT_FILTERS or name.startswith("_"):
            raise Invalid(f"Invalid filter field: {name}.")
    exact: dict[str, Sequence[Any]] = {
        column: [_exactly(name, query)] for name, column in _EXACT.items() if name in query
    }
    if "config_drive" in query:
        exact["config_drive"] = [
            bool(query.last("config_drive")) and query.boolean("config_drive")
        ]
    exact |= _states(call, query)
    visible = _visible(call, query, all_tenants_rule)
    if not visible and (project := query.last("project_id") or query.last("tenant_id")):
        exact["project_id"] = [project]
    if _nothing(query):
        exact["uuid"] = ()
    since, before = query.moment("changes-since"), query.moment("changes-before")
    if since and before and before < since:
        raise Invalid("The value of changes-since must be less than or equal to changes-before.")
    return Filters(
        visible=visible,
        exact=exact,
        patterns=_patterns(query),
        flavor_id=query.last("flavor"),
        ip=query.last("ip"),
        ip6=query.last("ip6"),
        search=_search(call, query),
        locked=query.boolean("locked") if "locked" in query else None,
        changed_since=since,
        changed_before=before,
        deleted=_deleted(call, query, exact),
        **(_tags(query) if call.version >= 26 else {}),
    )


def _permitted(call: Call) -> Query:
    """Return the parameters without those that are ignored for this user."""
    paging = {"limit", "marker", "sort_key", "sort_dir"}
    everything = call.allows("servers:allow_all_filters")
    return Query(
        {
            name: values
            for name, values in call.query.items()
            if name not in paging
            and (everything or _FOR_USERS.get(name, call.version + 1) <= call.version)
        }
    )


def _exactly(name: str, query: Query) -> Any:
    value = query.last(name)
    if name in ("image", "image_ref", "uuid") and value and ids.is_uuid(value):
        return str(uuid.UUID(value))
    return value


def _visible(call: Call, query: Query, all_tenants_rule: str) -> dict[str, str]:
    """Return the restriction to the project, else to the user; none with `all_tenants`."""
    if _all_tenants(query):
        call.check(all_tenants_rule)
        return {}
    if call.ctxt.project_id:
        return {"project_id": call.ctxt.project_id}
    return {"user_id": call.ctxt.user_id or ""}


def _all_tenants(query: Query) -> bool:
    # No value, as in `?all_tenants`, means yes.
    return "all_tenants" in query and (
        query.last("all_tenants") == "" or query.boolean("all_tenants")
    )


def _states(call: Call, query: Query) -> dict[str, Sequence[Any]]:
    """Return the states that match any of the values of `status`."""
    statuses = query.get("status")
    if not statuses:
        return {}
    vm_states: set[str] = set()
    task_states: set[str | None] = set()
    for status in statuses:
        pairs = _STATES_OF.get(status.upper(), ())
        if not pairs and status.upper() not in _OTHER_STATUSES and call.version >= 38:
            raise Invalid("Invalid status value")
        vm_states.update(vm for vm, _ in pairs)
        task_states.update(task for _, task in pairs)
    found: dict[str, Sequence[Any]] = {"vm_state": sorted(vm_states)}
    if vm_states and None not in task_states:
        found["task_state"] = sorted(str(task) for task in task_states)
    return found


def _pairs() -> dict[str, set[tuple[str, str | None]]]:
    """Status → the (vm_state, task_state) that show it."""
    found: dict[str, set[tuple[str, str | None]]] = {}
    for vm in VmState:
        for task in (None, *TaskState):
            status = states.status(vm, task)
            found.setdefault(status, set()).add((vm.value, task and task.value))
    return found


_STATES_OF = _pairs()


def _nothing(query: Query) -> bool:
    """Return whether a filter matches no server here."""
    return query.last("progress") not in (None, "0") or any(query.last(name) for name in _NEVER)


def _patterns(query: Query) -> dict[str, str]:
    return {
        column: pattern
        for name, column in _PATTERNS.items()
        if (pattern := query.last(name)) is not None
    }


def _tags(query: Query) -> dict[str, Any]:
    return {
        name: tuple(dict.fromkeys(value.split(",")))
        for parameter, name in _TAGS.items()
        if (value := query.last(parameter))
    }


def _search(call: Call, query: Query) -> str | None:
    asked = query.last(SEARCH) if call.version >= OURS_SINCE else None
    return asked.strip() or None if asked is not None else None


def _deleted(call: Call, query: Query, exact: Mapping[str, Sequence[Any]]) -> bool | None:
    if exact.get("vm_state") == [VmState.DELETED.value]:
        if not call.is_admin:
            raise Forbidden("Only administrators may list deleted instances")
        return True
    if "deleted" in query:
        with contextlib.suppress(ValueError):
            return bool(strutils.bool_from_string(query.last("deleted"), strict=True))
        return False
    # A list of changes includes deletions.
    return None if {"changes-since", "changes-before"} & query.keys() else False


def sort_of(call: Call) -> list[tuple[str, bool]]:
    """[(column, descending)] of the request. Raises Forbidden for keys of administrators."""
    keys = [key.strip() for key in call.query.get("sort_key", [])]
    directions = [word.strip() for word in call.query.get("sort_dir", [])]
    if any(word not in ("asc", "desc") for word in directions):
        raise Invalid("Unknown sort direction, must be 'desc' or 'asc'.")
    found: dict[str, bool] = {}
    for position, key in enumerate(keys or ["created_at"]):
        if key in ("host", "node") and not call.is_admin:
            raise Forbidden(f"Only administrators can sort servers by {key}")
        ignored = key in IGNORED_SORT_KEYS and not (key == LOCKED and call.version >= 73)
        column = None if ignored else _SORT.get(key, key)
        if column is not None:
            word = directions[min(position, len(directions) - 1)] if directions else "desc"
            found.setdefault(column, word == "desc")
    return list(found.items())

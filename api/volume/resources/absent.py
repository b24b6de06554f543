"""Resources that this cloud does not have: empty lists (with Cinder's keys), and refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from api.rows import Row
from api.volume.call import Call, operation
from common.errors import Invalid, NotFound

#: path → the key of its list
EMPTY: Mapping[str, str] = {
    "groups": "groups",
    "groups/detail": "groups",
    "group_types": "group_types",
    "group_snapshots": "group_snapshots",
    "group_snapshots/detail": "group_snapshots",
    "consistencygroups": "consistencygroups",
    "consistencygroups/detail": "consistencygroups",
    "cgsnapshots": "cgsnapshots",
    "cgsnapshots/detail": "cgsnapshots",
    "qos-specs": "qos_specs",
    "manageable_volumes": "manageable-volumes",
    "manageable_volumes/detail": "manageable-volumes",
    "manageable_snapshots": "manageable-snapshots",
    "manageable_snapshots/detail": "manageable-snapshots",
    "clusters": "clusters",
    "clusters/detail": "clusters",
}
#: collection → what it is of, in the refusal to make one
REFUSED: Mapping[str, str] = {
    "groups": "groups of volumes",
    "group_types": "groups of volumes",
    "group_snapshots": "groups of volumes",
    "consistencygroups": "groups of volumes",
    "cgsnapshots": "groups of volumes",
    "qos-specs": "QoS specs",
    "manageable_volumes": "volumes to be managed",
    "manageable_snapshots": "snapshots to be managed",
}


#: collection → who may ask for it, where not every reader
_ASKED_BY: Mapping[str, str] = {
    "clusters": "clusters:get_all",
    "qos-specs": "volume_extension:qos_specs_manage:get_all",
    "manageable_volumes": "volume_extension:list_manageable",
    "manageable_snapshots": "snapshot_extension:list_manageable",
}


#: collection → since which version there is one
_SINCE: Mapping[str, int] = {
    "clusters": 7,
    "manageable_volumes": 8,
    "manageable_snapshots": 8,
    "group_types": 11,
    "groups": 13,
    "group_snapshots": 14,
}


class Empty:
    """An empty list."""

    def __init__(self, key: str, what: str) -> None:
        self._key, self._what = key, what

    @operation("volume:get_all")
    def index(self, call: Call) -> Any:
        """List none."""
        return {self._key: []}

    @operation("volume:get_all")
    def create(self, call: Call) -> Any:
        """Refuse to make one."""
        raise Invalid(f"There are no {self._what} here.")

    @operation("volume:get_all")
    def item(self, call: Call, record_id: str) -> Any:
        """Find none."""
        raise NotFound(f"{self._key}: {record_id} could not be found.")


def _rows(path: str, key: str) -> Iterator[Row]:
    """Yield the rows of a collection, for those who may ask, since there is one."""
    collection = path.partition("/")[0]
    one = Empty(key, REFUSED.get(collection, ""))
    guard: dict[str, Any] = {"since": _SINCE.get(collection, 0)}
    if collection in _ASKED_BY:
        guard["rule"] = _ASKED_BY[collection]
    methods = {"GET": "index", "POST": "create"} if path in REFUSED else {"GET": "index"}
    yield Row(f"/{path}", one, methods, guard=guard)
    if "/" not in path:
        methods = dict.fromkeys(("GET", "PUT", "DELETE"), "item")
        yield Row(f"/{path}/{{record_id}}", one, methods, guard=guard)


ROUTES = tuple(row for path, key in EMPTY.items() for row in _rows(path, key))

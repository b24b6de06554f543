"""Resources that this cloud does not have: empty lists (with Cinder's keys), and refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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

    def __init__(self, key: str, collection: str) -> None:
        self._key, self._what = key, REFUSED.get(collection, "")
        self._rule = _ASKED_BY.get(collection, "volume:get_all")
        self._since = _SINCE.get(collection, 0)

    @operation()
    def index(self, call: Call) -> Any:
        """List none."""
        self._require(call)
        return {self._key: []}

    @operation()
    def create(self, call: Call) -> Any:
        """Refuse to make one."""
        self._require(call)
        raise Invalid(f"There are no {self._what} here.")

    @operation()
    def item(self, call: Call, record_id: str) -> Any:
        """Find none."""
        self._require(call)
        raise NotFound(f"{self._key}: {record_id} could not be found.")

    def _require(self, call: Call) -> None:
        """Raise NotFound before the version that has the collection, and Forbidden."""
        if call.version < self._since:
            raise NotFound
        call.check(self._rule, {"project_id": call.project})


Routes = dict[str, tuple[Mapping[str, Iterable[Any]], Mapping[str, Any]]]


def routes() -> Routes:
    """Return path → its operations."""
    found: Routes = {}
    for path, key in EMPTY.items():
        one = Empty(key, path.partition("/")[0])
        methods: dict[str, Iterable[Any]] = {"GET": [one.index]}
        if path in REFUSED:
            methods["POST"] = [one.create]
        found[f"/v3/{path}"] = (methods, {})
        if "/" not in path:
            every = {name: [one.item] for name in ("GET", "PUT", "DELETE")}
            found[f"/v3/{path}/{{record_id}}"] = (every, {})
    return found

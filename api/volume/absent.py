"""What there is none of: empty lists, and refusals that say so. Lists under Cinder's keys."""

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
    "os-volume-transfer": "transfers",
    "os-volume-transfer/detail": "transfers",
    "volume-transfers": "transfers",
    "volume-transfers/detail": "transfers",
    "manageable_volumes": "manageable-volumes",
    "manageable_volumes/detail": "manageable-volumes",
    "manageable_snapshots": "manageable-snapshots",
    "manageable_snapshots/detail": "manageable-snapshots",
    "clusters": "clusters",
    "clusters/detail": "clusters",
    "default-types": "default_types",
}
#: collection → what it is of, in the refusal to make one
REFUSED: Mapping[str, str] = {
    "groups": "groups of volumes",
    "group_types": "groups of volumes",
    "group_snapshots": "groups of volumes",
    "consistencygroups": "groups of volumes",
    "cgsnapshots": "groups of volumes",
    "qos-specs": "QoS specs",
    "os-volume-transfer": "transfers of volumes",
    "volume-transfers": "transfers of volumes",
    "manageable_volumes": "volumes to be managed",
    "manageable_snapshots": "snapshots to be managed",
}


class Empty:
    """A list of what there is none of."""

    def __init__(self, key: str, what: str = "") -> None:
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


class Extensions:
    """`/extensions`, `/resource_filters`: there is nothing to say but what the API has."""

    @operation("volume:get_all")
    def index(self, call: Call) -> Any:
        """List none."""
        return {"extensions": []}

    @operation("volume:get_all", since="3.33")
    def filters(self, call: Call) -> Any:
        """List what lists can be filtered by."""
        names = ["name", "status", "metadata", "bootable", "availability_zone", "created_at"]
        of_snapshots = ["name", "status", "volume_id", "metadata"]
        of_backups = ["name", "status", "volume_id"]
        found = {"volume": names, "snapshot": of_snapshots, "backup": of_backups}
        return {
            "resource_filters": [
                {"resource": name, "filters": filters} for name, filters in found.items()
            ]
        }


Routes = dict[str, tuple[Mapping[str, Iterable[Any]], Mapping[str, Any]]]


def routes() -> Routes:
    """Return path → its operations."""
    found: Routes = {}
    for path, key in EMPTY.items():
        one = Empty(key, REFUSED.get(path, ""))
        methods: dict[str, Iterable[Any]] = {"GET": [one.index]}
        if path in REFUSED:
            methods["POST"] = [one.create]
        found[f"/v3/{path}"] = (methods, {})
        if "/" not in path:
            every = {name: [one.item] for name in ("GET", "PUT", "DELETE")}
            found[f"/v3/{path}/{{record_id}}"] = (every, {})
    extensions = Extensions()
    found["/v3/extensions"] = ({"GET": [extensions.index]}, {})
    found["/v3/resource_filters"] = ({"GET": [extensions.filters]}, {})
    return found

"""`/os-volumes` and `/os-snapshots`, before 2.36: the Block Storage API's, by its rules.

Facts from nova's volumes.py and snapshots.py.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import old_volumes as schemas
from common.errors import Invalid, NotFound, SnapshotNotFound, VolumeNotFound
from common.resources.volumes import AttachStatus, device
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import NewVolume
from db.reads.hosts import services
from db.reads.keyset import Page
from db.reads.volumes import snapshots, volumes
from db.reads.volumes.snapshots import Filter as SnapshotFilter
from db.reads.volumes.snapshots import Snapshot
from db.reads.volumes.volumes import Filter, Volume
from web.guard import Reply

PATH = "os-volumes"
_UNTIL = "2.35"


class OldVolumes:
    """The volumes of a project."""

    @operation("os-volumes:list", until=_UNTIL, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List volumes."""
        return self._listed(call)

    @operation("os-volumes:detail", until=_UNTIL, query=schemas.LIST)
    def detail(self, call: Call) -> Any:
        """List volumes; they are the same."""
        return self._listed(call)

    @operation("os-volumes:show", until=_UNTIL)
    def show(self, call: Call, volume_id: str) -> Any:
        """Show a volume."""
        return {"volume": _view(_find(call, volume_id))}

    @operation("os-volumes:create", until=_UNTIL, body=schemas.CREATE_VOLUME)
    def create(self, call: Call) -> Any:
        """Make a volume."""
        call.check("volume:create", _own(call))
        made = call.conductor.create_volume(call.ctxt, _new(call, call.body["volume"]))
        body = {"volume": _view(_find(call, made))}
        return Reply(body, headers={"Location": call.links.location(PATH, made)})

    @operation("os-volumes:delete", until=_UNTIL, status=202)
    def delete(self, call: Call, volume_id: str) -> None:
        """Delete a volume."""
        found = _find(call, volume_id)
        call.check("volume:delete", {"project_id": found.project_id})
        call.conductor.delete_volume(call.ctxt, found.id, force=False)

    @staticmethod
    def _listed(call: Call) -> Any:
        call.check("volume:get_all", _own(call))
        # As in Nova a limit of 0 is none.
        limit = min(call.query.number("limit") or call.max_limit, call.max_limit)
        offset = call.query.number("offset") or 0
        wanted = Filter(project_id=call.project)
        found = call.read(volumes.listing, wanted, (), Page(limit=limit), offset)
        return {"volumes": [_view(one) for one in found]}


class OldSnapshots:
    """Snapshots of a project's volumes."""

    @operation("os-volumes:snapshots:list", until=_UNTIL, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List snapshots."""
        return self._listed(call)

    @operation("os-volumes:snapshots:detail", until=_UNTIL, query=schemas.LIST)
    def detail(self, call: Call) -> Any:
        """List snapshots; they are the same."""
        return self._listed(call)

    @operation("os-volumes:snapshots:show", until=_UNTIL)
    def show(self, call: Call, snapshot_id: str) -> Any:
        """Show a snapshot."""
        return {"snapshot": _snapshot_view(_snapshot(call, snapshot_id))}

    @operation("os-volumes:snapshots:delete", until=_UNTIL, status=202)
    def delete(self, call: Call, snapshot_id: str) -> None:
        """Delete a snapshot."""
        found = _snapshot(call, snapshot_id)
        call.check("volume:delete_snapshot", {"project_id": found.project_id})
        call.conductor.delete_volume_snapshot(call.ctxt, found.id)

    @operation("os-volumes:snapshots:create", until=_UNTIL, body=schemas.CREATE_SNAPSHOT)
    def create(self, call: Call) -> Any:
        """Take a snapshot."""
        asked = call.body["snapshot"]
        found = _find(call, asked["volume_id"])
        call.check("volume:create_snapshot", {"project_id": found.project_id})
        new = NewVolumeSnapshot(
            found.id,
            name=asked.get("display_name", "").strip(),
            description=asked.get("display_description", "").strip() or None,
            in_use=str(asked.get("force", False)).lower() in ("true", "1", "t", "on", "y", "yes"),
        )
        made = call.conductor.create_volume_snapshot(call.ctxt, new)
        return {"snapshot": _snapshot_view(_snapshot(call, made))}

    @staticmethod
    def _listed(call: Call) -> Any:
        call.check("volume:get_all_snapshots", _own(call))
        limit = min(call.query.number("limit") or call.max_limit, call.max_limit)
        offset = call.query.number("offset") or 0
        wanted = SnapshotFilter(project_id=call.project)
        found = call.read(snapshots.listing, wanted, (), Page(limit=limit), offset)
        return {"snapshots": [_snapshot_view(one) for one in found]}


def _own(call: Call) -> Mapping[str, Any]:
    return {"project_id": call.project}


def _find(call: Call, volume_id: str) -> Volume:
    found = call.read(volumes.get, volume_id, call.reach)
    if found is None or not call.allows("volume:get", {"project_id": found.project_id}):
        raise VolumeNotFound(f"Volume {volume_id} could not be found.")
    return found


def _snapshot(call: Call, snapshot_id: str) -> Snapshot:
    found = call.read(snapshots.get, snapshot_id, call.reach)
    target = None if found is None else {"project_id": found.project_id}
    if found is None or not call.allows("volume:get_snapshot", target):
        raise SnapshotNotFound(f"Snapshot {snapshot_id} could not be found.")
    return found


def _new(call: Call, asked: Mapping[str, Any]) -> NewVolume:
    """Return the request for the new volume. Raises NotFound, Invalid."""
    snapshot_id, zone = asked.get("snapshot_id"), asked.get("availability_zone") or None
    hosts = call.read(services.list_services, binary="nova-compute") if zone else ()
    if zone and all(one.availability_zone != zone for one in hosts):
        raise Invalid(f"Availability zone '{zone}' is invalid.")
    return NewVolume(
        call.project,
        int(asked["size"]),
        name=asked.get("display_name", "").strip(),
        description=asked.get("display_description", "").strip() or None,
        type_id=_type_id(call, asked.get("volume_type")),
        availability_zone=zone,
        metadata=asked.get("metadata", {}),
        snapshot_id=None if snapshot_id is None else _snapshot(call, snapshot_id).id,
    )


def _type_id(call: Call, asked: str | None) -> str | None:
    """Return the id of the type of this name or id. Raises NotFound."""
    if not asked:
        return None
    for one in call.read(volumes.types, call.reach):
        if asked in (one.id, one.name):
            return one.id
    raise NotFound(f"Volume type {asked} could not be found.")


def _view(one: Volume) -> dict[str, Any]:
    attached: list[dict[str, str]] = [
        {
            "id": one.id,
            "volumeId": one.id,
            "serverId": each.server_uuid,
            "device": device(each.slot),
        }
        for each in one.attachments
        if each.status != AttachStatus.ATTACHING
    ]
    return {
        "id": one.id,
        "status": one.status,
        "size": one.size_gib,
        "availabilityZone": one.availability_zone,
        "createdAt": _moment(one.created_at),
        "attachments": attached or [{}],
        "displayName": one.name,
        "displayDescription": one.description,
        "volumeType": one.type_name or one.type_id,
        "snapshotId": one.snapshot_id,
        "metadata": dict(one.meta),
    }


def _snapshot_view(one: Snapshot) -> dict[str, Any]:
    return {
        "id": one.id,
        "status": one.status,
        "size": one.size_gib,
        "createdAt": _moment(one.created_at),
        "displayName": one.name,
        "displayDescription": one.description,
        "volumeId": one.volume_id,
    }


def _moment(value: datetime.datetime) -> str:
    made = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return made.isoformat(timespec="microseconds")

"""`/os-volumes` and `/os-snapshots`, before 2.36: the Block Storage API's, by its rules.

Facts from nova's volumes.py and snapshots.py.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.policies import named
from api.compute.schemas import old_volumes as schemas
from common.errors import Invalid, NotFound, VolumeNotFound
from common.volumes import AttachStatus, device
from conductor.messages import NewVolume
from db.reads import volumes
from db.reads.keyset import Page
from db.reads.volumes import Filter, Volume
from web.guard import Reply

PATH = "os-volumes"
_UNTIL = "2.35"


class OldVolumes:
    """The volumes of a project."""

    @operation(named("os-volumes:list"), until=_UNTIL, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List volumes."""
        return self._listed(call)

    @operation(named("os-volumes:detail"), until=_UNTIL, query=schemas.LIST)
    def detail(self, call: Call) -> Any:
        """List volumes; they are the same."""
        return self._listed(call)

    @operation(named("os-volumes:show"), until=_UNTIL)
    def show(self, call: Call, volume_id: str) -> Any:
        """Show a volume."""
        return {"volume": _view(_find(call, volume_id))}

    @operation(named("os-volumes:create"), until=_UNTIL, body=schemas.CREATE_VOLUME)
    def create(self, call: Call) -> Any:
        """Make a volume."""
        made = call.conductor.create_volume(call.ctxt, _new(call, call.body["volume"]))
        body = {"volume": _view(_find(call, made))}
        return Reply(body, headers={"Location": call.links.location(PATH, made)})

    @operation(named("os-volumes:delete"), until=_UNTIL, status=202)
    def delete(self, call: Call, volume_id: str) -> None:
        """Delete a volume."""
        call.conductor.delete_volume(call.ctxt, _find(call, volume_id).id, force=False)

    @staticmethod
    def _listed(call: Call) -> Any:
        # As in Nova a limit of 0 is none.
        limit = min(call.query.number("limit") or call.max_limit, call.max_limit)
        offset = call.query.number("offset") or 0
        wanted = Filter(project_id=call.ctxt.project_id or "")
        found = call.read(volumes.listing, wanted, (), Page(limit=limit), offset)
        return {"volumes": [_view(one) for one in found]}


class OldSnapshots:
    """Snapshots of volumes: there are none."""

    @operation(named("os-volumes:snapshots:list"), until=_UNTIL, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List none."""
        return {"snapshots": []}

    @operation(named("os-volumes:snapshots:detail"), until=_UNTIL, query=schemas.LIST)
    def detail(self, call: Call) -> Any:
        """List none."""
        return {"snapshots": []}

    @operation(named("os-volumes:snapshots:show"), until=_UNTIL)
    def show(self, call: Call, snapshot_id: str) -> Any:
        """Find none."""
        raise _no_snapshot(snapshot_id)

    @operation(named("os-volumes:snapshots:delete"), until=_UNTIL, status=202)
    def delete(self, call: Call, snapshot_id: str) -> None:
        """Find none."""
        raise _no_snapshot(snapshot_id)

    @operation(named("os-volumes:snapshots:create"), until=_UNTIL, body=schemas.CREATE_SNAPSHOT)
    def create(self, call: Call) -> Any:
        """Refuse to make one."""
        _find(call, call.body["snapshot"]["volume_id"])
        raise Invalid("There are no snapshots of volumes here.")


def _find(call: Call, volume_id: str) -> Volume:
    project = None if call.is_admin else call.ctxt.project_id or ""
    found = call.read(volumes.get, volume_id, project)
    if found is None:
        raise VolumeNotFound(f"Volume {volume_id} could not be found.")
    return found


def _new(call: Call, asked: Mapping[str, Any]) -> NewVolume:
    """Return what is to be made. Raises NotFound."""
    snapshot_id = asked.get("snapshot_id")
    if snapshot_id is not None:
        raise _no_snapshot(snapshot_id)
    return NewVolume(
        call.ctxt.project_id or "",
        int(asked["size"]),
        name=asked.get("display_name", ""),
        description=asked.get("display_description"),
        type_id=_type_id(call, asked.get("volume_type")),
        availability_zone=asked.get("availability_zone") or None,
        metadata=asked.get("metadata", {}),
    )


def _type_id(call: Call, asked: str | None) -> str | None:
    """Return the id of the type of this name or id. Raises NotFound."""
    if not asked:
        return None
    for one in call.read(volumes.types, None if call.is_admin else call.ctxt.project_id or ""):
        if asked in (one.id, one.name):
            return one.id
    raise NotFound(f"Volume type {asked} could not be found.")


def _no_snapshot(snapshot_id: str) -> NotFound:
    return NotFound(f"Snapshot {snapshot_id} could not be found.")


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
    made = one.created_at.astimezone(datetime.UTC).replace(tzinfo=None)
    return {
        "id": one.id,
        "status": one.status,
        "size": one.size_gib,
        "availabilityZone": one.availability_zone,
        "createdAt": made.isoformat(timespec="microseconds"),
        "attachments": attached or [{}],
        "displayName": one.name,
        "displayDescription": one.description,
        "volumeType": one.type_name or one.type_id,
        "snapshotId": one.snapshot_id,
        "metadata": dict(one.meta),
    }

"""Volumes of a server: `os-volume_attachments`. Facts from nova's volume_attachments.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import volumes as schemas
from common.errors import Conflict, Invalid, NotFound, VolumeNotFound
from common.resources import action_preconditions
from common.resources.states import SHELVED
from common.resources.volumes import ATTACH, DETACH, device
from conductor.rpc.servers.server_volumes import AttachRequest
from db.reads.volumes import volumes
from db.reads.volumes.volumes import Attachment


class ServerVolumes:
    """The volumes of one server."""

    @operation("os-volumes-attachments:index", query=schemas.LIST, on=the_server)
    def index(self, call: Call) -> Any:
        """List a server's volumes."""
        # As in Nova a limit of 0 is none.
        limit = min(call.query.number("limit") or call.max_limit, call.max_limit)
        offset = call.query.number("offset") or 0
        found = _of_server(call)[offset:][:limit]
        return {"volumeAttachments": [_view(call, one) for one in found]}

    @operation("os-volumes-attachments:show", on=the_server)
    def show(self, call: Call, volume_id: str) -> Any:
        """Show one of a server's volumes."""
        return {"volumeAttachment": _view(call, _find(call, volume_id))}

    @operation(
        "os-volumes-attachments:create",
        body=schemas.CREATE,
        status={"2.1": 200, "2.101": 202},
        on=the_server,
    )
    def create(self, call: Call) -> Any:
        """Attach a volume; it is the server's once the volume is in-use."""
        _require_shelved_api(call, ATTACH)
        asked = call.body["volumeAttachment"]
        request = AttachRequest(
            asked["volumeId"],
            asked.get("tag"),
            _truth(asked.get("delete_on_termination", False)),
        )
        attached = call.conductor.attach_volume(call.ctxt, call.server.uuid, request)
        if call.version >= 101:
            return None
        # What came with 2.89 never was in this answer.
        shown = {
            "id": request.volume_id,
            "serverId": call.server.uuid,
            "volumeId": request.volume_id,
            "device": device(attached.slot),
        }
        later = (
            (70, "tag", request.tag),
            (79, "delete_on_termination", request.delete_on_termination),
        )
        return {"volumeAttachment": shown | _since(call, later)}

    @operation(
        asks=("os-volumes-attachments:update", "os-volumes-attachments:swap"),
        body=schemas.UPDATE,
        status=202,
        on=the_server,
    )
    def update(self, call: Call, volume_id: str) -> None:
        """Change whether a volume is deleted with its server; swapping volumes is refused."""
        asked = call.body["volumeAttachment"]
        swaps = call.version < 85 or asked["volumeId"] != volume_id
        if swaps:
            call.check("os-volumes-attachments:swap")
        else:
            target = {"project_id": call.server.project_id}
            call.check("os-volumes-attachments:update", target)
        if call.version >= 85:
            _update(call, volume_id, asked)
        if swaps:
            _require_volume(call, volume_id)
            raise Conflict(
                f"volume {volume_id} is not migrating; this API should only be called by Cinder"
            )

    @operation("os-volumes-attachments:delete", status=202, on=the_server)
    def delete(self, call: Call, volume_id: str) -> None:
        """Detach a volume; if the guest does not release it, it remains attached."""
        _require_shelved_api(call, DETACH)
        call.conductor.detach_volume(call.ctxt, call.server.uuid, volume_id)


def _update(call: Call, volume_id: str, asked: Mapping[str, Any]) -> None:
    """Change what may be changed. Raises Invalid for the rest."""
    found = next((one for one in _of_server(call) if one.volume_id == volume_id), None)
    if found is None:
        raise NotFound(f"No volume Block Device Mapping with id {volume_id}.")
    for name, has in (
        ("id", found.volume_id),
        ("serverId", found.server_uuid),
        ("device", device(found.slot)),
        ("tag", found.tag),
    ):
        if asked.get(name, has) != has:
            raise Invalid(f"The {name} property is not mutable")
    if "delete_on_termination" in asked:
        deletes = _truth(asked["delete_on_termination"])
        call.conductor.set_delete_on_termination(
            call.ctxt, call.server.uuid, volume_id, delete=deletes
        )


def _require_shelved_api(call: Call, action: str) -> None:
    """Raise ServerStateConflict for a shelved server before 2.20."""
    if call.version < 20 and call.server.vm_state in SHELVED:
        server = call.server
        raise action_preconditions.conflict(server.uuid, "vm_state", server.vm_state, action)


def _require_volume(call: Call, volume_id: str) -> None:
    if call.read(volumes.get, volume_id, call.reach) is None:
        raise VolumeNotFound(f"Volume {volume_id} could not be found.")


def _of_server(call: Call) -> list[Attachment]:
    return call.read(volumes.attachments, call.server.uuid)


def _find(call: Call, volume_id: str) -> Attachment:
    found = next((one for one in _of_server(call) if one.volume_id == volume_id), None)
    if found is None:
        raise NotFound(f"Instance {call.server.uuid} is not attached to volume {volume_id}")
    return found


def _view(call: Call, one: Attachment) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "serverId": one.server_uuid,
        "volumeId": one.volume_id,
        "device": device(one.slot),
    }
    if call.version < 89:
        shown["id"] = one.volume_id
    later = (
        (70, "tag", one.tag),
        (79, "delete_on_termination", one.delete_on_termination),
        (89, "attachment_id", one.id),
        (89, "bdm_uuid", one.id),
    )
    return shown | _since(call, later)


def _since(call: Call, later: Iterable[tuple[int, str, Any]]) -> dict[str, Any]:
    return {name: value for since, name, value in later if call.version >= since}


def _truth(value: Any) -> bool:
    return bool(strutils.bool_from_string(value))

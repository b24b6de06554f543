"""Volumes of a server: `os-volume_attachments`. Facts from nova's volume_attachments.py."""

from __future__ import annotations

from typing import Any

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.policies import named
from api.compute.resources.found import the_server
from api.compute.schemas import volumes as schemas
from common.errors import Invalid, NotFound
from common.volumes import device
from conductor.messages import VolumeWish
from db.reads import volumes
from db.reads.volumes import Attachment


class ServerVolumes:
    """The volumes of one server."""

    @operation(named("os-volumes-attachments:index"), query=schemas.LIST, on=the_server)
    def index(self, call: Call) -> Any:
        """List a server's volumes."""
        limit, _ = call.query.page(call.max_limit)
        offset = call.query.number("offset") or 0
        found = _of_server(call)[offset:][:limit]
        return {"volumeAttachments": [_view(call, one) for one in found]}

    @operation(named("os-volumes-attachments:show"), on=the_server)
    def show(self, call: Call, volume_id: str) -> Any:
        """Show one of a server's volumes."""
        return {"volumeAttachment": _view(call, _find(call, volume_id))}

    @operation(
        named("os-volumes-attachments:create"),
        body=schemas.CREATE,
        status={"2.1": 200, "2.101": 202},
        on=the_server,
    )
    def create(self, call: Call) -> Any:
        """Attach a volume; it is the server's once the volume is in-use."""
        asked = call.body["volumeAttachment"]
        wish = VolumeWish(
            asked["volumeId"],
            asked.get("tag"),
            _truth(asked.get("delete_on_termination", False)),
        )
        call.conductor.attach_volume(call.ctxt, call.server.uuid, wish)
        if call.version >= 101:
            return None
        return {"volumeAttachment": _view(call, _find(call, wish.volume_id))}

    @operation(
        named("os-volumes-attachments:update"), body=schemas.UPDATE, status=202, on=the_server
    )
    def update(self, call: Call, volume_id: str) -> None:
        """Change whether a volume goes with its server; volumes can't be swapped here."""
        asked = call.body["volumeAttachment"]
        found = _find(call, volume_id)
        if asked["volumeId"] != volume_id:
            call.check(named("os-volumes-attachments:swap"))
            raise Invalid("A volume of a server can't be swapped for another one here.")
        for name, has in (
            ("device", device(found.slot)),
            ("tag", found.tag),
            ("serverId", found.server_uuid),
            ("id", found.volume_id),
        ):
            if asked.get(name) not in (None, has):
                raise Invalid(f"The value of '{name}' can't be changed.")
        if "delete_on_termination" in asked:
            goes = _truth(asked["delete_on_termination"])
            call.conductor.keep_volume(call.ctxt, call.server.uuid, volume_id, delete=goes)

    @operation(named("os-volumes-attachments:delete"), status=202, on=the_server)
    def delete(self, call: Call, volume_id: str) -> None:
        """Detach a volume; where the guest keeps it, it stays."""
        call.conductor.detach_volume(call.ctxt, call.server.uuid, volume_id)


def _of_server(call: Call) -> list[Attachment]:
    return call.read(volumes.attachments, None, server_uuids=[call.server.uuid])


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
    return shown | {name: value for since, name, value in later if call.version >= since}


def _truth(value: Any) -> bool:
    return bool(strutils.bool_from_string(value))

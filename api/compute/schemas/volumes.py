"""Bodies of servers' volumes; facts from nova's schemas/volume_attachment.py."""

from __future__ import annotations

from api.compute.schemas.types import (
    BOOLEAN,
    LIMIT,
    TAG,
    UUID,
    Schema,
    body,
    changed,
    query,
    record,
)

_DEVICE: Schema = {
    "type": ["string", "null"],
    "pattern": "(^/dev/x{0,1}[a-z]{0,1}d{0,1})([a-z]+)[0-9]*$",
}
_CREATE: Schema = body(
    "volumeAttachment", record({"volumeId": UUID, "device": _DEVICE}, ["volumeId"])
)
_TAGGED = changed(_CREATE, "volumeAttachment", tag=TAG)
CREATE = {
    "2.1": _CREATE,
    "2.49": _TAGGED,
    "2.79": changed(_TAGGED, "volumeAttachment", delete_on_termination=BOOLEAN),
}

UPDATE = {
    "2.1": body("volumeAttachment", record({"volumeId": UUID}, ["volumeId"])),
    "2.85": body(
        "volumeAttachment",
        record(
            {
                "volumeId": UUID,
                "device": _DEVICE,
                "tag": TAG,
                "delete_on_termination": BOOLEAN,
                "serverId": UUID,
                "id": UUID,
            },
            ["volumeId"],
        ),
    ),
}
_PAGE = {"limit": LIMIT, "offset": LIMIT}
LIST = {"2.1": query(_PAGE, more=True), "2.75": query(_PAGE, more=False)}

"""Bodies of the proxies of volumes and snapshots.

Facts from nova's schemas/volumes.py and schemas/snapshots.py; what Cinder would refuse is refused
here.
"""

from __future__ import annotations

from api.compute.schemas.types import (
    BOOLEAN,
    DESCRIPTION,
    LIMIT,
    SIZE,
    Schema,
    body,
    query,
    record,
)

_TEXT: Schema = {**DESCRIPTION, "type": "string"}
_METADATA: Schema = {
    "type": "object",
    "patternProperties": {"^[a-zA-Z0-9-_:. ]{1,255}$": {"type": "string", "maxLength": 255}},
    "additionalProperties": False,
    "maxProperties": 128,
}
CREATE_VOLUME = {
    "2.1": body(
        "volume",
        record(
            {
                "volume_type": _TEXT,
                "metadata": _METADATA,
                "snapshot_id": _TEXT,
                "size": {**SIZE, "maximum": 1 << 24},
                "availability_zone": _TEXT,
                "display_name": _TEXT,
                "display_description": _TEXT,
            },
            ["size"],
        ),
    )
}
CREATE_SNAPSHOT = {
    "2.1": body(
        "snapshot",
        record(
            {
                "volume_id": _TEXT,
                "force": BOOLEAN,
                "display_name": _TEXT,
                "display_description": _TEXT,
            },
            ["volume_id"],
        ),
    )
}
LIST = {"2.1": query({"limit": LIMIT, "offset": LIMIT}, more=True)}

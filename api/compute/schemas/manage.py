"""Bodies of adoptions and of the actions that Nova doesn't have."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, record

_ID: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}
_WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
_VMID: Schema = {
    "type": ["integer", "string"],
    "pattern": "^[0-9]+$",
    "minimum": 100,
    "maximum": 999_999_999,
}
ADOPT = {
    "2.1": body(
        "adoption",
        record(
            {
                "cluster": _WORD,
                "vmid": _VMID,
                "project_id": _ID,
                "user_id": _ID,
                "name": types.NAME,
                "flavor": _WORD,
            },
            ["cluster", "vmid", "project_id"],
        ),
    )
}

_NOTHING: Schema = {"type": ["null", "object"], "additionalProperties": False}
RELEASE = {"2.1": body("release", _NOTHING)}
MARK = {"2.1": body("mark", _NOTHING)}
HOLD = {"2.1": body("hold", _NOTHING)}
RELEASE_HOLD = {"2.1": body("release-hold", _NOTHING)}
RETRY = {"2.1": body("retry", _NOTHING)}
FORGET = {
    "2.1": body(
        "forget",
        {
            "type": ["null", "object"],
            "properties": {"reason": types.DESCRIPTION, "force": types.BOOLEAN},
            "additionalProperties": False,
        },
    )
}

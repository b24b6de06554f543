"""Bodies and queries of `/os-keypairs`."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, changed, query, record


def _named(pattern: str) -> Schema:
    return {
        "allOf": [
            types.NAME,
            {"type": "string", "pattern": pattern, "minLength": 1, "maxLength": 255},
        ]
    }


_CREATE = body(
    "keypair",
    record({"name": _named(r"^[_\- a-zA-Z0-9]+$"), "public_key": {"type": "string"}}, ["name"]),
)
_CREATE_22 = changed(_CREATE, "keypair", type={"type": "string", "enum": ["ssh", "x509"]})
_CREATE_210 = changed(_CREATE_22, "keypair", user_id={"type": "string"})
_CREATE_292 = changed(_CREATE_210, "keypair", name=_named(r"^[_\-\@\. a-zA-Z0-9]+$"))
_CREATE_292["properties"]["keypair"]["required"] = ["name", "public_key"]

CREATE = {"2.1": _CREATE, "2.2": _CREATE_22, "2.10": _CREATE_210, "2.92": _CREATE_292}

_USER = {"user_id": types.TEXT}
LIST = {
    "2.1": query({}, more=True),
    "2.10": query(_USER, more=True),
    "2.35": query({**_USER, **types.PAGING}, more=True),
    "2.75": query({**_USER, **types.PAGING}, more=False),
}
SHOW = {
    "2.1": query({}, more=True),
    "2.10": query(_USER, more=True),
    "2.75": query(_USER, more=False),
}

"""Bodies and queries of the audit."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, one, query, record

LIST_AUDITS = {"2.1": query({"limit": one(types.LIMIT)}, more=False)}
_BOOLEANS: Schema = {"type": "array", "items": types.BOOLEAN}
LIST_FINDINGS = {
    "2.1": query(
        {"limit": one(types.LIMIT), "healed": one(_BOOLEANS), "kind": one(types.TEXT)}, more=False
    )
}
_RESTORE: Schema = record({"apply": {"type": "boolean"}}, ["apply"])
RESTORE = {"2.1": record({"restore": _RESTORE}, ["restore"])}
_HEAL: Schema = record({"force": {"type": "boolean"}})
HEAL = {"2.1": record({"heal": {**_HEAL, "type": ["object", "null"]}}, ["heal"])}

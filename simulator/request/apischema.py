"""The API schema of a real Proxmox VE 9.2: what each call takes, who may make it, who answers.

The file is the server's own without its prose and answers; `tests/fixtures/pve/trim.py` writes it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson

Rule = Mapping[str, Any]
Rules = Mapping[str, Rule]

_FILE = Path(__file__).parents[1] / "apischema.json.gz"


@cache
def methods() -> Mapping[str, Mapping[str, Any]]:
    """Return the server's methods by path: ``methods()[path][method]``."""
    return {one["path"]: one.get("info", {}) for one in _entries(orjson.loads(_text()))}


def _text() -> bytes:
    return gzip.decompress(_FILE.read_bytes())


def _entries(tree: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in tree:
        yield entry
        yield from _entries(entry.get("children") or [])


def parameters(method: Mapping[str, Any]) -> dict[str, Rule]:
    """Return all parameters of a method; what only one of several kinds takes is optional."""
    schema = method.get("parameters", {})
    found = dict(schema.get("properties", {}))
    for part in schema.get("allOf", ()):
        found |= part.get("properties", {})
        kinds = part.get("oneOf", ())
        if kinds:
            found[part["type-property"]] = part["type-property-schema"]
        for kind in kinds:
            for name, one in kind["properties"].items():
                everywhere = all(name in other["properties"] for other in kinds)
                found[name] = one if everywhere else {**one, "optional": 1}
    return found

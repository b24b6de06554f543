"""Mapped directories and USB devices: stored and listed; no VM uses one."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from simulator.errors import PveError
from simulator.request.call import Call

_WHAT = {"dir": "directory", "usb": "USB"}
_MAY_SEE = ("Mapping.Modify", "Mapping.Use", "Mapping.Audit")


def _kind(call: Call) -> str:
    return call.path.split("/")[3]


def _kept(call: Call) -> dict[str, dict[str, str]]:
    return call.cluster.shares.setdefault(_kind(call), {})


def _save(call: Call) -> None:
    call.cluster.save("shares", "shares", call.cluster.shares)


def _shown(call: Call, options: dict[str, str]) -> dict[str, Any]:
    digest = hashlib.sha1(orjson.dumps(_kept(call)), usedforsecurity=False).hexdigest()
    shown: dict[str, Any] = {**options, "map": options["map"].split("\0")}
    return shown | {"type": _kind(call), "digest": digest}


def index(_call: Call) -> list[dict[str, str]]:
    """`GET /cluster/mapping`."""
    return [{"name": name} for name in ("dir", "pci", "usb")]


def listing(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/mapping/dir` and `usb`: those that the caller may see."""
    return [
        {"id": name, **_shown(call, options)}
        for name, options in _kept(call).items()
        if call.cluster.access.has(call.who, f"/mapping/{_kind(call)}/{name}", *_MAY_SEE)
    ]


def one(call: Call) -> dict[str, Any]:
    """`GET /cluster/mapping/dir/{id}` and `usb`."""
    options = _kept(call).get(call.get("id"))
    if options is None:
        raise PveError(f"mapping '{call.get('id')}' not found")
    return _shown(call, options)


def create(call: Call) -> None:
    """`POST /cluster/mapping/dir` and `usb`; doesn't check that nodes have it."""
    kind, name = _kind(call), call.get("id")
    if name in _kept(call):
        raise PveError(f"create {_WHAT[kind]} mapping failed: {kind} ID '{name}' already defined")
    _kept(call)[name] = {key: text for key, text in call.params.items() if key != "id"}
    _save(call)


def delete(call: Call) -> None:
    """`DELETE /cluster/mapping/dir/{id}` and `usb`: succeeds also if there is none."""
    _kept(call).pop(call.get("id"), None)
    _save(call)

"""The datacenter's options: stored as given, shown as parsed."""

from __future__ import annotations

from typing import Any

from simulator.propstring import split
from simulator.request.call import Call

_LISTS = frozenset({"registered-tags"})
_PARTS = frozenset({"crs", "migration", "next-id", "tag-style", "user-tag-access"})


def options(call: Call) -> dict[str, Any]:
    """`GET /cluster/options`: all with Sys.Audit, else only the tags that the caller may set."""
    kept = call.cluster.options
    tags = {"allowed-tags": _tags(call)}
    if not call.cluster.access.has(call.who, "/", "Sys.Audit"):
        return tags
    return {"description": ""} | {name: _shown(name, kept[name]) for name in kept} | tags


def _shown(name: str, text: Any) -> Any:
    if name in _LISTS:
        return [tag for tag in str(text).split(";") if tag]
    if name not in _PARTS:
        return text
    parts: dict[str, Any] = {
        key: int(value) if key.startswith("ha-") else value
        for key, value in split(str(text), "type").items()
    }
    if "user-allow-list" in parts:
        parts["user-allow-list"] = parts["user-allow-list"].split(";")
    return parts


def set_options(call: Call) -> None:
    """`PUT /cluster/options`."""
    for name in call.get("delete").split(","):
        call.cluster.options.pop(name, None)
    given = {name: text for name, text in call.params.items() if name != "delete"}
    call.cluster.options.update(given)
    call.cluster.save("options", "options", call.cluster.options)


def _tags(call: Call) -> list[str]:
    found: set[str] = set()
    for vm in call.cluster.vms.values():
        found.update(tag for tag in vm.config.get("tags", "").split(";") if tag)
    registered = str(call.cluster.options.get("registered-tags", ""))
    return sorted(found | {tag for tag in registered.split(";") if tag})

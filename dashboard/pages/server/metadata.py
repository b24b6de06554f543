"""A server's name, description, tags and metadata, to be edited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import Invalid
from dashboard.answer import Answer, Redirect
from dashboard.cloud import COMPUTE, segment
from dashboard.pages import lines
from dashboard.pages.server.frame import framed
from dashboard.visit import Visit


def show(visit: Visit) -> Answer:
    """Show what describes a server; members edit it."""
    found = framed(visit)
    items = _items(found.server)
    return found.view(
        "metadata",
        items=items,
        as_lines=lines.as_lines(items),
        others=sorted(name for name, value in items.items() if not lines.fits(name, value)),
    )


def rename(visit: Visit) -> Answer:
    """Change name, description and hostname."""
    asked: dict[str, Any] = {"name": visit.field("name")}
    asked["description"] = visit.field("description") or None
    if visit.field("hostname"):
        asked["hostname"] = visit.field("hostname")
    said = "The server is renamed and described so."
    return visit.change(
        _tab(visit), said, visit.cloud.put, COMPUTE, _path(visit), {"server": asked}
    )


def tag(visit: Visit) -> Answer:
    """Replace all tags."""
    body = {"tags": lines.words(visit.field("tags"))}
    path = f"{_path(visit)}/tags"
    return visit.change(_tab(visit), "The tags are saved.", visit.cloud.put, COMPUTE, path, body)


def describe(visit: Visit) -> Answer:
    """Replace all metadata but items that no line of the form can show."""
    try:
        wanted = lines.pairs(visit.field("metadata"), "An item")
    except Invalid as error:
        visit.note(error.message, "failed")
        return Redirect(_tab(visit))
    server = visit.cloud.get(COMPUTE, _path(visit))["server"]
    hidden = {name: one for name, one in _items(server).items() if not lines.fits(name, one)}
    body = {"metadata": {**hidden, **wanted}}
    path = f"{_path(visit)}/metadata"
    said = "The metadata are saved."
    return visit.change(_tab(visit), said, visit.cloud.put, COMPUTE, path, body)


def _items(server: Mapping[str, Any]) -> dict[str, str]:
    return dict(server.get("metadata") or {})


def _path(visit: Visit) -> str:
    return f"/servers/{segment(visit.params['server_id'])}"


def _tab(visit: Visit) -> str:
    return f"{_path(visit)}/metadata"
